# A consumer of lifecycle hooks, written only from docs/hooks.md with Python's standard library. Tests control it: POST /control sets the
# answers to events, GET /seen lists the received requests. It checks every claim of every request and reports the problems.
import base64
import hashlib
import hmac
import json
import os
import socket
import struct
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRETS = [secret.encode() for secret in os.environ["HOOK_SECRETS"].split(",")]
rules = []
received = []
first_answers = {}


def encode_base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def compute_hmac(secret, text):
    return hmac.new(secret, text.encode(), hashlib.sha256).digest()


def check(url, headers, body):
    try:
        header, claims, signature = headers["authorization"].removeprefix("Bearer ").split(".")
        expected = decode_base64url(signature)
        candidates = (s for s in SECRETS if hmac.compare_digest(compute_hmac(s, header + "." + claims), expected))
        secret = next(candidates, None)
        request_claims, request, now = json.loads(decode_base64url(claims)), json.loads(body), time.time()
        checks = {
            "signature": secret is not None,
            "alg": json.loads(decode_base64url(header)).get("alg") == "HS256",
            "aud": request_claims.get("aud") == url,
            "times": request_claims["nbf"] <= now < request_claims["exp"] and request_claims["iat"] <= now + 1,
            "hash": request_claims.get("body_sha256") == hashlib.sha256(body).hexdigest(),
            "jti": request_claims.get("jti") == request["meta"]["dispatch_id"],
            "type": request_claims.get("type") == request["type"] == headers["service-hook-event"],
            "sub": request_claims.get("sub") == "slipway:chat:" + request["meta"]["chat_id"],
            "iss": bool(request_claims.get("iss")),
            "version": request["meta"]["schema_version"] == 1,
            "encoding": headers["accept-encoding"] == "identity",
            "members": set(request) == {"type", "meta", "data"},
        }
        problems = [name for name, is_valid in checks.items() if not is_valid]
        return problems, secret, request_claims, request
    except Exception as error:
        return [repr(error)], None, {}, {}


def sign(secret, request_claims, body, **other):
    now = int(time.time())
    claims = {key: request_claims[key] for key in ("jti", "type", "sub", "aud")}
    claims.update({"iss": "test-policy", "iat": now, "nbf": now - 30, "exp": now + 120})
    claims["body_sha256"] = hashlib.sha256(body).hexdigest()
    claims.update(other)
    text = ".".join(encode_base64url(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return text + "." + encode_base64url(compute_hmac(secret, text))


def applies(rule, event, tool):
    return rule["event"] == event and rule.get("tool", tool) == tool and rule.get("times", 1) > 0


class Consumer(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def reply(self, status, body, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(200, json.dumps(received).encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/control":
            rules[:] = json.loads(body)
            return self.reply(200, b"{}")
        url = "http://%s%s" % (self.headers["host"], self.path)
        problems, secret, request_claims, request = check(url, self.headers, body)
        event = request.get("type")
        entry = {"event": event, "problems": problems, "request": request, "body": body.decode()}
        entry["authorization"] = self.headers["authorization"]
        received.append(entry)
        tool = request.get("data", {}).get("tool_name")
        rule = next((rule for rule in rules if applies(rule, event, tool)), {})
        if "times" in rule:
            rule["times"] -= 1
        answer = rule.get("raw", json.dumps(rule["answer"]) if "answer" in rule else "").encode()
        fault = rule.get("how")
        if fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return self.connection.close()
        if fault == "slow":
            time.sleep(rule["seconds"])
        if fault == "status":
            return self.reply(rule["status"], answer)
        if fault == "unsigned":
            return self.reply(200, answer)
        signature = sign(secret or b"", request_claims, answer)
        if fault == "wrongly signed":
            signature = sign(b"another secret of more than 32 bytes", request_claims, answer)
        if fault == "other body":
            signature = sign(secret, request_claims, answer + b" ")
        if fault == "expired":
            signature = sign(secret, request_claims, answer, exp=int(time.time()) - 1)
        if fault == "reflected":
            signature = self.headers["authorization"].removeprefix("Bearer ")
        if fault == "other event":
            signature = sign(secret, request_claims, answer, type="stop" if event != "stop" else "pre_compact")
        if fault == "replayed" and event in first_answers:
            answer, signature = first_answers[event]
        first_answers.setdefault(event, (answer, signature))
        self.reply(rule.get("status", 200), answer, [("service-hook-signature", signature)])


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Consumer)
server.daemon_threads = True
server.handle_error = lambda *_: None
print(server.server_port, flush=True)
server.serve_forever()
