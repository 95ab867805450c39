# Reads a stream through each API, as the first examples of the Python SDKs do, once for each four arguments: a key, and the base URLs of
# OpenAI, Anthropic and Google. For each stream, prints a line of JSON with its text and the digests of the response bodies.
import hashlib
import json
import sys

import httpx2
from anthropic import Anthropic
from google import genai
from openai import OpenAI

body_digests = []


class DigestingTransport(httpx2.HTTPTransport):
    """Computes a digest of each response body, in the order of the responses."""

    def handle_request(self, request):
        response = super().handle_request(request)
        digest = hashlib.sha256()
        body_digests.append(digest)
        original = response.stream

        class Stream(httpx2.SyncByteStream):
            def __iter__(self):
                for piece in original:
                    digest.update(piece)
                    yield piece

            def close(self):
                original.close()

        response.stream = Stream()
        return response


def make_client():
    return httpx2.Client(transport=DigestingTransport())


def print_stream(api, texts):
    digests = [digest.hexdigest() for digest in body_digests]
    body_digests.clear()
    print(json.dumps({"api": api, "text": "".join(texts), "bytes": digests}), flush=True)


def read_all(key, openai_base, anthropic_base, google_base):
    openai = OpenAI(api_key=key, base_url=openai_base, http_client=make_client(), max_retries=0)
    completion = openai.chat.completions.create(
        model="chat-model",
        messages=[{"role": "user", "content": "Say this is a test"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    print_stream("chat completions", [choice.delta.content or "" for chunk in completion for choice in chunk.choices])

    response = openai.responses.create(model="response-model", input="Say this is a test", stream=True)
    print_stream("responses", [event.delta for event in response if event.type == "response.output_text.delta"])

    anthropic = Anthropic(api_key=key, base_url=anthropic_base, http_client=make_client(), max_retries=0)
    message = {"role": "user", "content": "Say this is a test"}
    with anthropic.messages.stream(model="message-model", max_tokens=64, messages=[message]) as stream:
        print_stream("messages", list(stream.text_stream))

    options = genai.types.HttpOptions(base_url=google_base, httpx_client=make_client())
    google = genai.Client(api_key=key, http_options=options)
    chunks = google.models.generate_content_stream(model="content-model", contents="Say this is a test")
    print_stream("generateContent", [chunk.text or "" for chunk in chunks])


arguments = sys.argv[1:]
for start in range(0, len(arguments), 4):
    read_all(*arguments[start : start + 4])
