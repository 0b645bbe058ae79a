"""Errors of a request and their JSON: Refusal("n must be 1", param="n").to_json() ->
{"error": {"message": "n must be 1", "type": "invalid_request_error", "param": "n", "code": None}}."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class ErrorBody(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorReply(BaseModel):
    """OpenAI's form of an error."""

    error: ErrorBody


class Refusal(Exception):
    """A refused request: an HTTP status and the reason. `param` is the wrong field."""

    def __init__(self, message: str, *, status: int = 400, code: str | None = None, param: str | None = None):
        super().__init__(message)
        self.message, self.status, self.code, self.param = message, status, code, param

    def to_json(self) -> dict[str, Any]:
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        body = ErrorBody(message=self.message, type=kind, param=self.param, code=self.code)
        return ErrorReply(error=body).model_dump()
