"""Makes a workspace and a chat that works in it, and prints what both say: python example.py TEMPLATE PROMPT."""

import os
import sys

from slipway_client import Slipway

template, prompt = sys.argv[1:]
slipway = Slipway(os.environ.get("SLIPWAY_URL", "http://127.0.0.1:7080"), os.environ["SLIPWAY_TOKEN"])

workspace = slipway.create_workspace("me", body={"name": "example", "template_id": template})
for line in slipway.follow_build_log(workspace["latest_build"]["id"]):
    print(line["output"])

chat = slipway.create_chat(
    body={
        "organization_id": workspace["organization_id"],
        "workspace_id": workspace["id"],
        "content": [{"type": "text", "text": prompt}],
    }
)
for event in slipway.follow_chat(chat["id"]):
    if event["type"] == "message":
        print(event["message"]["role"], *(part.get("text", "") for part in event["message"]["content"]))
    if event["type"] == "status" and event["status"]["status"] in ("waiting", "error"):
        break
