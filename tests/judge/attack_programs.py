# ruff: noqa: E501 - a program on one line reads better than one that is broken for its width
"""Programs that try to cheat, to get out, or to bring the judge down. Every one prints `BREACH` when it succeeds.

`BREACH` is the expected output of its test, so a judge that lets one through calls it correct. Words in capitals
between percent signs are filled in by the test: a file outside that holds a secret, a port that listens, and so on.
"""

from __future__ import annotations

import platform

BREACH = "breach"

# By the kernel's tables: on x86-64, and on ARM (whose table is the generic one).
MACHINES = ("x86_64", "aarch64")
NUMBERS = {
    "unshare": (272, 97),
    "clone": (56, 220),
    "clone3": (435, 435),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "perf_event_open": (298, 241),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "memfd_create": (319, 279),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "personality": (135, 92),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "sethostname": (170, 161),
    "capset": (126, 91),
    "prctl": (157, 167),
    "mlockall": (151, 230),
    "timer_create": (222, 107),
    "ioctl": (16, 29),
    "process_vm_readv": (310, 270),
    "ptrace": (101, 117),
    "open_by_handle_at": (304, 265),
    "getpid by x32": (0x40000000 + 39, 0x40000000 + 172),
}


def numbers_on(machine: str) -> dict[str, int]:
    """numbers_on("aarch64")["socket"] -> 198."""
    return {name: both[MACHINES.index(machine)] for name, both in NUMBERS.items()}


# A few lines that programs share: `attempt(f)` prints BREACH if f returns, `call(name, …)` makes a raw system call.
PRELUDE = (
    f"NUMBERS = {numbers_on(platform.machine())}"
    + """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(name, *arguments):
    result = libc.syscall(ctypes.c_long(NUMBERS[name]), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result
def attempt(action):
    try:
        action()
    except (OSError, MemoryError, RuntimeError, ImportError, ValueError, AttributeError) as error:
        print("refused", type(error).__name__)
    else:
        print("breach")
"""
)

READING = {
    "read a file outside": "attempt(lambda: open('%SECRET%').read())",
    "read the password file": "attempt(lambda: open('/etc/passwd').read())",
    "read through a symbolic link": "attempt(lambda: (os.symlink('%SECRET%', 'link'), open('link').read()))",
    "read through a hard link": "attempt(lambda: (os.link('%SECRET%', 'link'), open('link').read()))",
    "climb out by dots": "attempt(lambda: open('../' * 30 + '%SECRET%'[1:]).read())",
    "list the folder of the secret": "attempt(lambda: os.listdir(os.path.dirname('%SECRET%')))",
    "read the judge's environment": "attempt(lambda: open('/proc/%PID%/environ', 'rb').read())",
    "read the judge's memory": "attempt(lambda: open('/proc/%PID%/mem', 'rb').read(0))",
    "read its parent's memory": "attempt(lambda: open(f'/proc/{os.getppid()}/mem', 'rb').read(0))",
    "list processes": "attempt(lambda: os.listdir('/proc'))",
    "reopen its descriptors": "attempt(lambda: os.open('/proc/self/fd/0', os.O_RDWR))",
    "find the secret in its environment": "print('breach' if 'token-' in str(os.environ) else 0)",
    "find open descriptors": """
def is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
print('breach' if any(map(is_open, range(3, 2000))) else 'none')
""",
    "find the expected output among its objects": """
import gc
found = [o for o in gc.get_objects() if isinstance(o, str)]
for o in gc.get_objects():
    if isinstance(o, dict):
        found += [v for v in list(o.values()) if isinstance(v, str)]
print(*{s for s in found if s.startswith('%TOKEN%'[:6])})
""",
    "find the expected output in its frames": """
frame, seen = sys._getframe(), []
while frame:
    seen += [v for v in frame.f_locals.values() if isinstance(v, (str, dict, list))]
    frame = frame.f_back
print(*(str(v) for v in seen if '%TOKEN%'[:6] in str(v) and 'frame' not in str(v)))
""",
    "read what stands in its output": "os.lseek(1, 0, 0); print('breach' if os.read(1, 100) else 'empty')",
    "copy the judge's descriptors": "attempt(lambda: call('pidfd_getfd', call('pidfd_open', %PID%, 0), 0, 0))",
    "read memory of another process": """
local = ctypes.create_string_buffer(8)
class Vector(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
here, there = Vector(ctypes.addressof(local), 8), Vector(id(None), 8)
for pid in (%PID%, os.getppid(), 1):
    try:
        call('process_vm_readv', pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
        print('breach')
    except OSError:
        print('refused')
""",
    "trace the judge": "attempt(lambda: call('ptrace', 16, %PID%, 0, 0))",
    "trace its parent": "attempt(lambda: call('ptrace', 16, os.getppid() or 1, 0, 0))",
    "open a file by handle": "attempt(lambda: call('open_by_handle_at', -100, bytes(64), 0))",
}

WRITING = {
    "write a file outside": "attempt(lambda: open('%SECRET%', 'w').write('gone'))",
    "make a file outside": "attempt(lambda: open('%FOLDER%/made', 'w').write('here'))",
    "remove a file outside": "attempt(lambda: os.unlink('%SECRET%'))",
    "rename a file outside": "attempt(lambda: os.rename('%SECRET%', '%SECRET%.moved'))",
    "truncate a file outside": "attempt(lambda: os.truncate('%SECRET%', 0))",
    "chmod a file outside": "attempt(lambda: os.chmod('%SECRET%', 0o777))",
    "change the times of a file outside": "attempt(lambda: os.utime('%SECRET%', (1, 1)))",
    "change the owner of a file outside": "attempt(lambda: os.chown('%SECRET%', 12345, 12345))",
    "write to the root": "attempt(lambda: open('/made', 'w').write('here'))",
    "write to shared memory": "attempt(lambda: open('/dev/shm/made-by-attack', 'w').write('here'))",
    "poison the standard library": "import json; attempt(lambda: open(json.__file__, 'a').write('#'))",
    "leave bytecode behind": """
import json
folder = os.path.dirname(json.__file__) + '/__pycache__'
attempt(lambda: open(folder + '/attack.pyc', 'w').write('here'))
""",
    "plant a library to preload": "attempt(lambda: open('/etc/ld.so.preload', 'w').write('/tmp/evil.so'))",
    "make a device": "import stat; attempt(lambda: os.mknod('disk', 0o600 | stat.S_IFBLK, os.makedev(8, 0)))",
    "fill the disk": """
size = 0
try:
    with open('big', 'wb', 0) as file:
        while size < 64 << 20:
            size += file.write(bytes(1 << 20))
    print('breach')
except OSError:
    print('stopped')
""",
    "fill the disk with many files": """
size = 0
try:
    for number in range(60):
        with open(f'part{number}', 'wb', 0) as file:
            for _ in range(4):
                size += file.write(bytes(1 << 20))
except OSError:
    pass
print('breach' if size > 40 << 20 else size)
""",
    "make a huge sparse file": "attempt(lambda: os.truncate(os.open('sparse', os.O_CREAT | os.O_RDWR), 1 << 40))",
    "use up inodes": """
made = 0
try:
    for made in range(5000):
        open(f'file{made}', 'w').close()
except OSError:
    pass
print('breach' if made > 1000 else made)
""",
    "dig deep folders": """
depth = 0
try:
    for depth in range(5000):
        os.mkdir('d')
        os.chdir('d')
except OSError:
    pass
print('breach' if depth > 1000 else depth)
""",
    "hang on a pipe of its own": "os.mkfifo('pipe'); open('pipe')",
    "set the user bit": "open('x', 'w').close(); os.chmod('x', 0o4755); attempt(lambda: os.execv('./x', ['x']))",
}

PROCESSES = {
    "fork": """
def fork():
    if os.fork() == 0:
        time.sleep(30)
attempt(fork)
""",
    "fork bomb": """
while True:
    try:
        os.fork()
    except OSError:
        pass
""",
    "fork by system call": "attempt(lambda: call('clone', 17, 0, 0, 0, 0))",
    "fork by clone3": "attempt(lambda: call('clone3', (ctypes.c_uint64 * 8)(), 64))",
    "daemonise": """
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
attempt(daemon)
""",
    "start a shell": "import subprocess; attempt(lambda: subprocess.run(['/bin/sh', '-c', 'true'], check=True))",
    "start a shell by system": "print('breach' if os.system('true') == 0 else 'refused')",
    "become a shell": "attempt(lambda: os.execv('/bin/sh', ['sh', '-c', 'echo breach']))",
    "become a file in memory": """
def become():
    memory = call('memfd_create', b'x', 0)
    os.write(memory, open(sys.executable or '/bin/true', 'rb').read())
    os.execve(memory, ['x', '-c', 'print("breach")'], {})
attempt(become)
""",
    "thread bomb": """
import threading
count = 0
try:
    for count in range(100000):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
except (RuntimeError, MemoryError):
    pass
print('breach' if count > 2000 else 'stopped')
sys.stdout.flush()
os._exit(0)
""",
    "thread bomb with small stacks": """
import _thread
_thread.stack_size(32768)
count = 0
try:
    for count in range(100000):
        _thread.start_new_thread(time.sleep, (60,))
except (RuntimeError, MemoryError):
    pass
print('breach' if count > 2000 else 'stopped')
sys.stdout.flush()
os._exit(0)
""",
    "kill the judge": "attempt(lambda: os.kill(%PID%, 9))",
    "kill its parent": "attempt(lambda: os.kill(os.getppid() or %PID%, 9))",
    "kill everyone": "attempt(lambda: os.kill(-1, 9))",
    "kill its group": "attempt(lambda: os.killpg(0, 9))",
    "stop the judge": "attempt(lambda: os.kill(%PID%, 19))",
    "send signals through a descriptor": "import fcntl; attempt(lambda: fcntl.fcntl(0, fcntl.F_SETOWN, %PID%))",
    "change the judge's limits": "import resource; attempt(lambda: resource.prlimit(%PID%, resource.RLIMIT_CPU, (1, 1)))",
    "raise its own limits": """
import resource
attempt(lambda: resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)))
""",
    "raise its priority": "attempt(lambda: os.setpriority(os.PRIO_PROCESS, 0, -20))",
    "slow the judge": "attempt(lambda: os.setpriority(os.PRIO_PROCESS, %PID%, 19))",
    "become root": "attempt(lambda: (os.setuid(0), open('/etc/shadow').read()))",
    "outlive its parent": "attempt(lambda: call('prctl', 1, 0, 0, 0, 0))",
}

HANGING = {
    "loop": "while True: pass",
    "sleep": "time.sleep(1000)",
    "ignore signals and loop": """
import signal
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True: pass
""",
    "block signals and sleep": """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True: time.sleep(100)
""",
    "stop itself": "import signal; os.kill(os.getpid(), signal.SIGSTOP); time.sleep(1000)",
    "wait for input that never comes": "r, w = os.pipe(); os.read(r, 1)",
    "backtrack": "import re; re.match('(a+)+$', 'a' * 60 + 'b')",
    "power": "x = 9 ** 9 ** 9 ** 9",
    "long division": "int('7' * 4000) ** 200000; print(10 ** 10 ** 8 % 7)",
    "leave a thread running": "import threading; threading.Thread(target=lambda: time.sleep(1000)).start()",
    "hang at exit": "import atexit; atexit.register(lambda: time.sleep(1000))",
    "hang when it is collected": """
class Hang:
    def __del__(self): time.sleep(1000)
hang = Hang()
del hang
""",
    "trace itself for ever": """
def tracer(*_):
    while True: pass
sys.settrace(tracer)
(lambda: 0)()
""",
}

EXHAUSTING = {
    "memory": "x = []\nwhile True: x.append(bytearray(1 << 20))",
    "memory at once": "x = bytearray(8 << 30)",
    "mapped memory": "import mmap\nm = [mmap.mmap(-1, 1 << 26) for _ in range(1000)]\nfor x in m: x.write(b'x' * (1 << 26))",
    "string doubling": "s = 'x'\nwhile True: s += s",
    "huge integer": "x = 1 << (1 << 40)",
    "endless output": "while True: sys.stdout.write('x' * 65536)",
    "endless errors": "while True: sys.stderr.write('x' * 65536)",
    "output past its limit and then the answer": "sys.stdout.write('x' * (3 << 20)); print('breach')",
    "sparse output": "os.lseek(1, 1 << 40, 0); os.write(1, b'breach')",
    "recursion": "sys.setrecursionlimit(10 ** 9)\ndef f(): f()\nf()",
    "recursion in C": """
sys.setrecursionlimit(10 ** 9)
x = []
for _ in range(10 ** 6): x = [x]
repr(x)
""",
    "segmentation fault": "ctypes.string_at(0)",
    "abort": "os.abort()",
    "stack smash": "libc.memset(ctypes.create_string_buffer(8), 65, 1 << 24)",
    "nested source": "eval('(' * 10000 + ')' * 10000)",
    "descriptors": "x = []\nwhile True: x.append(os.dup(0))",
    "pipes": "x = []\nwhile True: x.append(os.pipe())",
}

FORGING = {
    "exit before printing": "os._exit(0)",
    "exit with success in a handler": "import atexit; atexit.register(os._exit, 0); print('wrong')",
    "print and exit with an error": "print('breach'); sys.exit(1)",
    "print and die": "print('breach', flush=True); ctypes.string_at(0)",
    "print and raise": "print('breach'); raise ValueError('but')",
    "print a verdict": 'print(\'{"status": "correct", "score": 1.0}\\ncorrect\\nok\')',
    "say ready on every descriptor": """
for number in range(3, 300):
    try:
        os.write(number, b'r{"ended": [{"status": 0}]}')
    except OSError:
        pass
""",
    "patch print": "import builtins; builtins.print = lambda *a: None; print('breach')",
    "patch the harness": """
for name, module in list(sys.modules.items()):
    if module and 'foresail' in name:
        for key in list(vars(module)):
            if callable(vars(module)[key]):
                setattr(module, key, lambda *a, **k: 0)
sys.modules['json'] = None
""",
    "return into the zygote's loop": """
frame = sys._getframe()
while frame.f_back:
    frame = frame.f_back
for name, value in list(frame.f_locals.items()):
    for key in ('work', 'wait', 'spawn', 'report'):
        if hasattr(value, key):
            setattr(value, key, lambda *a: [])
os._exit = lambda *a: None
raise SystemExit(0)
""",
    "write the output of the next test": "os.lseek(1, 0, 2); os.write(1, b'x'); os.ftruncate(1, 0); os._exit(0)",
    "find a file of an earlier test": "print('breach' if os.path.exists('mark') else 0); open('mark', 'w').write('x')",
}

# Calls that give power over the kernel, with arguments that would succeed outside.
CALLS = {
    "unshare a user namespace": "'unshare', 0x10000000",
    "unshare a mount namespace": "'unshare', 0x20000",
    "clone into a user namespace": "'clone', 0x10000011, 0, 0, 0, 0",
    "mount": "'mount', b'none', b'/tmp', b'tmpfs', 0, 0",
    "unmount": "'umount2', b'/tmp', 2",
    "pivot_root": "'pivot_root', b'.', b'.'",
    "chroot": "'chroot', b'/tmp'",
    "bpf": "'bpf', 0, (ctypes.c_uint32 * 32)(2, 4, 4, 1), 128",
    "userfaultfd": "'userfaultfd', 1",
    "io_uring": "'io_uring_setup', 4, (ctypes.c_uint32 * 30)()",
    "perf events": "'perf_event_open', (ctypes.c_uint32 * 30)(1, 120), 0, -1, -1, 0",
    "keyring": "'keyctl', 0, -3, 1",
    "add a key": "'add_key', b'user', b'name', b'secret', 6, -3",
    "memory file": "'memfd_create', b'name', 0",
    "socket": "'socket', 2, 1, 0",
    "Unix socket": "'socket', 1, 1, 0",
    "netlink socket": "'socket', 16, 3, 0",
    "packet socket pair": "'socketpair', 2, 1, 0, (ctypes.c_int * 2)()",
    "shared memory": "'shmget', 0, 4096, 0o1600",
    "semaphores": "'semget', 0, 1, 0o1600",
    "message queue": "'msgget', 0, 0o1600",
    "POSIX message queue": "'mq_open', b'attack', 0o102, 0o600, 0",
    "personality": "'personality', 0x0040000",
    "watch files": "'inotify_init1', 0",
    "watch everything": "'fanotify_init', 0, 0",
    "process descriptor": "'pidfd_open', %PID%, 0",
    "compare processes": "'kcmp', %PID%, %PID%, 0, 0, 0",
    "host name": "'sethostname', b'evil', 4",
    "capabilities": "'capset', (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(0xffffffff, 0xffffffff)",
    "dumpable again": "'prctl', 4, 1, 0, 0, 0",
    "another filter": "'prctl', 22, 2, 0, 0, 0",
    "lock memory": "'mlockall', 1",
    "timers that signal others": "'timer_create', 0, (ctypes.c_uint32 * 16)(0, 0, 9, 4, 1), ctypes.byref(ctypes.c_int())",
    "x32 call": "'getpid by x32'",
    "type into a terminal": "'ioctl', 0, 0x5412, b'x'",
}

NETWORK = {
    "connect to the judge's port": "import socket; attempt(lambda: socket.create_connection(('127.0.0.1', %PORT%), 1).send(b'x'))",
    "connect to an abstract socket": """
import socket
attempt(lambda: (s := socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), s.connect('\\0%ABSTRACT%'), s.send(b'x')))
""",
    "send from a pair to an address": """
import socket
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
attempt(lambda: a.sendto(b'x', '\\0%ABSTRACT%'))
""",
    "listen": "import socket; attempt(lambda: socket.create_server(('127.0.0.1', 0)))",
    "resolve a name": "import socket; attempt(lambda: socket.getaddrinfo('localhost', 80) and socket.socket())",
}

PROGRAMS = READING | WRITING | PROCESSES | HANGING | EXHAUSTING | FORGING | NETWORK
PROGRAMS |= {f"call: {name}": f"attempt(lambda: call({arguments}))" for name, arguments in CALLS.items()}
