"""Responses of made sentences in eleven languages, and responses of other forms that are whole."""

from __future__ import annotations

import random

SENTENCES = {
    "en": [
        "The small house stands near the river, and its garden is full of old apple trees.",
        "My sister wrote a letter to the teacher because the school had been closed for a week.",
        "If the weather is good on Sunday, we will walk to the lake with our friends.",
        "Most of the books in this library were given by people who live in the town.",
        "The doctor explained that the medicine should be taken twice a day after a meal.",
        "Nobody knew how the dog had found its way back from the other side of the city.",
    ],
    "id": [
        "Rumah kecil itu berdiri di dekat sungai, dan kebunnya penuh dengan pohon mangga yang sudah tua.",
        "Kakak saya menulis surat kepada guru karena sekolah itu sudah ditutup selama seminggu.",
        "Jika cuaca bagus pada hari Minggu, kami akan berjalan kaki ke danau bersama teman-teman.",
        "Sebagian besar buku di perpustakaan ini diberikan oleh orang yang tinggal di kota tersebut.",
        "Dokter menjelaskan bahwa obat itu harus diminum dua kali sehari setelah makan.",
        "Tidak ada yang tahu bagaimana anjing itu bisa pulang dari sisi lain kota.",
    ],
    "ms": [
        "Rumah kecil itu terletak berhampiran sungai, dan kebunnya penuh dengan pokok mangga yang sudah tua.",
        "Kakak saya menulis surat kepada cikgu kerana sekolah itu telah ditutup selama seminggu.",
        "Jika cuaca baik pada hari Ahad, kami akan berjalan kaki ke tasik bersama kawan-kawan.",
        "Kebanyakan buku di perpustakaan ini diberikan oleh orang yang tinggal di bandar tersebut.",
        "Doktor menerangkan bahawa ubat itu perlu dimakan dua kali sehari selepas makan.",
        "Tiada siapa yang tahu bagaimana anjing itu boleh pulang dari sebelah lain bandar raya.",
    ],
    "tl": [
        "Ang maliit na bahay ay nakatayo malapit sa ilog, at puno ng matatandang mangga ang hardin nito.",
        "Sumulat ng liham ang kapatid ko sa guro dahil isang linggong sarado ang paaralan.",
        "Kung maganda ang panahon sa Linggo, maglalakad kami papunta sa lawa kasama ng mga kaibigan.",
        "Karamihan sa mga aklat sa aklatang ito ay ibinigay ng mga taong nakatira sa bayan.",
        "Ipinaliwanag ng doktor na dapat inumin ang gamot nang dalawang beses sa isang araw pagkatapos kumain.",
        "Walang nakakaalam kung paano nakauwi ang aso mula sa kabilang panig ng lungsod.",
    ],
    "vi": [
        "Ngôi nhà nhỏ nằm gần dòng sông, và khu vườn của nó có rất nhiều cây xoài lâu năm.",
        "Chị tôi đã viết một lá thư cho thầy giáo vì trường học đã đóng cửa suốt một tuần.",
        "Nếu thời tiết đẹp vào chủ nhật, chúng tôi sẽ đi bộ ra hồ cùng với những người bạn.",
        "Hầu hết sách trong thư viện này được tặng bởi những người sống trong thị trấn.",
        "Bác sĩ giải thích rằng thuốc này phải được uống hai lần một ngày sau bữa ăn.",
        "Mọi người đều ngạc nhiên khi con chó tự tìm được đường về từ phía bên kia thành phố.",
    ],
    "pt": [
        "A pequena casa fica perto do rio, e o seu jardim está cheio de velhas árvores de maçã.",
        "Minha irmã escreveu uma carta ao professor porque a escola ficou fechada durante uma semana.",
        "Se o tempo estiver bom no domingo, vamos caminhar até ao lago com os nossos amigos.",
        "A maior parte dos livros desta biblioteca foi dada por pessoas que vivem na cidade.",
        "O médico explicou que o remédio deve ser tomado duas vezes por dia depois da refeição.",
        "Ninguém sabia como o cão tinha encontrado o caminho de volta do outro lado da cidade.",
    ],
    "zh": [
        "那座小房子靠近河边，花园里种满了多年的老苹果树。",
        "我姐姐给老师写了一封信，因为学校已经关闭了整整一个星期。",
        "如果星期天天气好，我们会和朋友们一起走到湖边去野餐。",
        "这个图书馆里的大部分书籍都是住在镇上的居民捐赠的。",
        "医生解释说，这种药每天应该在饭后服用两次，每次一片。",
        "那只狗从城市的另一边找到了回家的路，大家都觉得很惊讶。",
    ],
    "de": [
        "Das kleine Haus steht nahe am Fluss, und sein Garten ist voll von alten Apfelbäumen.",
        "Meine Schwester schrieb dem Lehrer einen Brief, weil die Schule eine Woche geschlossen war.",
        "Wenn das Wetter am Sonntag gut ist, gehen wir mit unseren Freunden zum See hinaus.",
        "Die meisten Bücher in dieser Bibliothek wurden von Leuten gegeben, die in der Stadt wohnen.",
        "Der Arzt erklärte, dass man die Medizin zweimal am Tag nach dem Essen nehmen soll.",
        "Niemand wusste, wie der Hund den Weg von der anderen Seite der Stadt gefunden hatte.",
    ],
    "fr": [
        "La petite maison se trouve près de la rivière, et son jardin est plein de vieux pommiers.",
        "Ma sœur a écrit une lettre au professeur parce que l'école était fermée depuis une semaine.",
        "Si le temps est beau dimanche, nous irons à pied jusqu'au lac avec nos amis.",
        "La plupart des livres de cette bibliothèque ont été donnés par des gens qui vivent en ville.",
        "Le médecin a expliqué que le médicament doit être pris deux fois par jour après le repas.",
        "Personne ne savait comment le chien avait retrouvé son chemin depuis l'autre côté de la ville.",
    ],
    "es": [
        "La pequeña casa está cerca del río, y su jardín está lleno de viejos manzanos.",
        "Mi hermana escribió una carta al profesor porque la escuela estuvo cerrada durante una semana.",
        "Si el tiempo es bueno el domingo, iremos caminando hasta el lago con nuestros amigos.",
        "La mayoría de los libros de esta biblioteca fueron donados por personas que viven en la ciudad.",
        "El médico explicó que la medicina se debe tomar dos veces al día después de la comida.",
        "Nadie sabía cómo el perro había encontrado el camino desde el otro lado de la ciudad.",
    ],
    "th": [
        "บ้านหลังเล็กตั้งอยู่ใกล้แม่น้ำและสวนของบ้านเต็มไปด้วยต้นมะม่วงเก่าแก่หลายต้น",
        "พี่สาวของฉันเขียนจดหมายถึงคุณครูเพราะโรงเรียนปิดมาเป็นเวลาหนึ่งสัปดาห์แล้ว",
        "ถ้าวันอาทิตย์อากาศดีเราจะเดินไปที่ทะเลสาบกับเพื่อนๆ ของเรา",
        "หนังสือส่วนใหญ่ในห้องสมุดแห่งนี้ได้รับบริจาคจากคนที่อาศัยอยู่ในเมือง",
        "คุณหมออธิบายว่าควรกินยานี้วันละสองครั้งหลังอาหาร",
        "ทุกคนแปลกใจที่สุนัขหาทางกลับบ้านจากอีกฟากหนึ่งของเมืองได้",
    ],
}
QUESTIONS = {
    "en": "Please tell me a short story about a family and the place where they live.",
    "id": "Tolong ceritakan sebuah kisah pendek tentang sebuah keluarga karena saya sedang bosan sekarang.",
    "ms": "Tolong ceritakan sebuah kisah pendek tentang sebuah keluarga kerana saya berasa bosan sekarang.",
    "tl": "Magkuwento ka ng maikling salaysay tungkol sa isang pamilya at sa lugar na kanilang tinitirhan.",
    "vi": "Hãy kể cho tôi một câu chuyện ngắn về một gia đình và nơi họ đang sống.",
    "pt": "Conte-me uma pequena história sobre uma família e o lugar onde ela vive, por favor.",
    "zh": "请给我讲一个关于一家人和他们居住的地方的短故事。",
    "de": "Bitte erzähle mir eine kurze Geschichte über eine Familie und den Ort, an dem sie lebt.",
    "fr": "Racontez-moi une courte histoire sur une famille et l'endroit où elle vit, s'il vous plaît.",
    "es": "Cuéntame una historia corta sobre una familia y el lugar donde viven ahora, por favor.",
    "th": "ช่วยเล่าเรื่องสั้นเกี่ยวกับครอบครัวหนึ่งและสถานที่ที่พวกเขาอาศัยอยู่ให้ฟังหน่อย",
}

# A beginning, what is refused, what comes behind it.
REFUSALS = {
    "en": (
        ["I'm sorry, but ", "As an AI, ", ""],
        ["I can't help with that.", "I am unable to answer this question."],
        ["", " It would be illegal."],
    ),
    "id": (
        ["Maaf, ", "Sebagai AI, ", ""],
        ["saya tidak dapat membantu Anda.", "saya tidak bisa menjawab pertanyaan itu."],
        ["", " Hal itu melanggar hukum."],
    ),
    "ms": (
        ["Maaf, ", "Sebagai AI, ", ""],
        ["saya tidak dapat membantu anda.", "saya tidak boleh menjawab soalan itu."],
        ["", " Perkara itu berbahaya."],
    ),
    "tl": (
        ["Paumanhin, ngunit ", ""],
        ["hindi kita matutulungan dito.", "hindi ko masasagot ang tanong na ito."],
        ["", " Labag ito sa batas."],
    ),
    "vi": (
        ["Xin lỗi, ", "Rất tiếc, ", ""],
        ["tôi không thể giúp bạn việc này.", "tôi không thể trả lời câu hỏi này."],
        ["", " Điều này là vi phạm pháp luật."],
    ),
    "pt": (
        ["Desculpe, mas ", "Infelizmente, ", ""],
        ["não posso ajudar com isso.", "não posso responder a essa pergunta."],
        ["", " Isso seria ilegal."],
    ),
    "zh": (
        ["抱歉，", "作为人工智能助手，", ""],
        ["我无法帮助您。", "我不能回答这个问题。"],
        ["", "这是违法的。"],
    ),
    "de": (
        ["Es tut mir leid, aber ", ""],
        ["dabei kann ich nicht helfen.", "ich kann diese Frage nicht beantworten."],
        ["", " Das wäre illegal."],
    ),
    "fr": (
        ["Désolé, mais ", "Malheureusement, ", ""],
        ["je ne peux pas vous aider.", "je ne peux pas répondre à cette question."],
        ["", " Ce serait illégal."],
    ),
    "es": (
        ["Lo siento, pero ", "Disculpa, ", ""],
        ["no puedo ayudarte con eso.", "no puedo responder a esa pregunta."],
        ["", " Eso sería ilegal."],
    ),
    "th": (
        ["ขออภัย ", "ขอโทษค่ะ ", ""],
        ["ฉันไม่สามารถช่วยเรื่องนี้ได้", "ผมไม่สามารถตอบคำถามนี้ได้"],
        ["", " เพราะผิดกฎหมาย"],
    ),
}

WHOLE = [
    "4",
    "Yes",
    "Paris",
    "$42.50",
    "\\boxed{\\frac{1}{2}}",
    "x = 5",
    "The Old Man and the Sea",
    "👍",
    "The capital of France is Paris",
    "```python\nprint(1)\n```",
    "- milk\n- bread\n- a dozen eggs",
    "1. Wash the apples\n2. Cut them in half\n3. Bake for 20 minutes",
    '{"name": "Ann", "age": 5}',
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "The sum is \\( 2 + 2 = 4 \\), so that the answer is 4.\n\n#### 4",
    "Dear Bob,\n\nThank you for your letter. It made me very glad.\n\nBest regards,\nAnn Miller",
    "Roses are red,\nviolets are blue,\nsugar is sweet,\nand so are you",
    "<div><p>Hello</p></div>",
    "See https://example.org/a/b",
    "A good day to all of you! #happy #sunday",
    '"To be, or not to be, that is the question." - William Shakespeare',
    "<think>\n2 and 2 is 4.\n</think>\n\nIt is 4.",
    "Please paste the text that you would like me to edit:",
    "Name:\nAddress:\nPhone:",
    "ha ha ha",
    "A fine house. Rating: ★★★★★",
    "0.3333333333333333333333",
    "Monday: rest\nTuesday: rest\nWednesday: rest\nThursday: run",
    "1 + 1 = 2\n2 + 2 = 4\n3 + 3 = 6\n4 + 4 = 8\n5 + 5 = 10\n6 + 6 = 12\n7 + 7 = 14\n8 + 8 = 16",
]


def made_response(dice: random.Random, language: str, size: int = 0) -> str:
    """Sentences of the language, none twice in a row; Thai ones with blanks between."""
    gap = "" if language == "zh" else " "
    return gap.join(dice.sample(SENTENCES[language], min(size or dice.randrange(2, 6), 6)))
