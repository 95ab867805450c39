# Reads a stream by each API, as the first pages of the SDKs for Python show, once for each four arguments: a key, and the base URLs of OpenAI,
# Anthropic and Google. Prints for each stream its text and digests of the bytes of the answers, as one line of JSON.
import hashlib
import json
import sys

import httpx2
from anthropic import Anthropic
from google import genai
from openai import OpenAI

seen = []


class Recording(httpx2.HTTPTransport):
    """Keeps the bytes of answers, in the order in which they come."""

    def handle_request(self, request):
        response = super().handle_request(request)
        digest = hashlib.sha256()
        seen.append(digest)
        whole = response.stream

        class Stream(httpx2.SyncByteStream):
            def __iter__(self):
                for piece in whole:
                    digest.update(piece)
                    yield piece

            def close(self):
                whole.close()

        response.stream = Stream()
        return response


def client():
    return httpx2.Client(transport=Recording())


def tell(api, texts):
    digests = [digest.hexdigest() for digest in seen]
    seen.clear()
    print(json.dumps({"api": api, "text": "".join(texts), "bytes": digests}), flush=True)


def read_all(key, openai_base, anthropic_base, google_base):
    openai = OpenAI(api_key=key, base_url=openai_base, http_client=client(), max_retries=0)
    completion = openai.chat.completions.create(
        model="chat-model",
        messages=[{"role": "user", "content": "Say this is a test"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    tell("chat completions", [choice.delta.content or "" for chunk in completion for choice in chunk.choices])

    response = openai.responses.create(model="response-model", input="Say this is a test", stream=True)
    tell("responses", [event.delta for event in response if event.type == "response.output_text.delta"])

    anthropic = Anthropic(api_key=key, base_url=anthropic_base, http_client=client(), max_retries=0)
    message = {"role": "user", "content": "Say this is a test"}
    with anthropic.messages.stream(model="message-model", max_tokens=64, messages=[message]) as stream:
        tell("messages", list(stream.text_stream))

    options = genai.types.HttpOptions(base_url=google_base, httpx_client=client())
    google = genai.Client(api_key=key, http_options=options)
    chunks = google.models.generate_content_stream(model="content-model", contents="Say this is a test")
    tell("generateContent", [chunk.text or "" for chunk in chunks])


given = sys.argv[1:]
for at in range(0, len(given), 4):
    read_all(*given[at : at + 4])
