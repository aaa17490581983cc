"""Generates a client of the API's document with each public generator, and sends bob a message with each.

    clients.py URL PLACE

A generator counts as working only if its client has every operation of the document.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import urllib.request

URL, PLACE = sys.argv[1:]
SCRIPTS = sysconfig.get_path("scripts")
DOCUMENT = os.path.join(PLACE, "openapi.json")
# What the daemon expects on its Unix socket, before which the test has a relay.
HOST = {"Host": "localhost"}
METHODS = {"get", "put", "post", "delete", "patch"}


def run(*words):
    """Runs a generator, which has two minutes: one that does not end is a fault of the document too."""
    environment = dict(os.environ, PATH=f"{SCRIPTS}:{os.environ['PATH']}")
    done = subprocess.run(words, cwd=PLACE, env=environment, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(f"{words[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def operations(document):
    """The operations' names, as Python writes them."""
    ids = [path[method]["operationId"] for path in document["paths"].values() for method in path if method in METHODS]
    return {"".join("_" + letter.lower() if letter.isupper() else letter for letter in name).replace("open_a_p_i", "open_api") for name in ids}


def lacking(tool, wanted, found):
    if missing := sorted(wanted - found):
        sys.exit(f"{tool} leaves out {', '.join(missing)}")


def openapi_python_client(wanted):
    target = os.path.join(PLACE, "attrs_client")
    run("openapi-python-client", "generate", "--path", DOCUMENT, "--output-path", target, "--meta", "none")
    names = {name[:-3] for _, _, files in os.walk(os.path.join(target, "api")) for name in files if name.endswith(".py")}
    lacking("openapi-python-client", wanted, names)
    client = importlib.import_module("attrs_client").Client(base_url=URL, timeout=60, headers=HOST)
    models = importlib.import_module("attrs_client.models")
    send = importlib.import_module("attrs_client.api.messages.send_message")
    invite = importlib.import_module("attrs_client.api.invitations.invite")
    invitation = invite.sync(client=client, body=models.InvitationRequest(peer="bob", timeout_seconds=30), wait=True)
    assert invitation.state == "accepted", invitation
    receipt = send.sync(client=client, body=models.MessageRequest(to=["bob"], body="from openapi-python-client"))
    return receipt.recipients[0].status


def openapi_generator(wanted):
    target = os.path.join(PLACE, "generated")
    run("openapi-generator-cli", "generate", "-g", "python", "-i", DOCUMENT, "-o", target, "--package-name", "pydantic_client")
    sys.path.insert(0, target)
    package = importlib.import_module("pydantic_client")
    apis = [getattr(package, name) for name in dir(package) if name.endswith("Api")]
    lacking("openapi-generator-cli", wanted, {name for api in apis for name in dir(api)})
    with package.ApiClient(package.Configuration(host=URL)) as client:
        client.default_headers.update(HOST)
        request = package.MessageRequest(to=package.MessageRequestTo(["bob"]), body="from OpenAPI Generator")
        receipt = package.MessagesApi(client).send_message(request, _request_timeout=60)
    return receipt.recipients[0].status


def main():
    with urllib.request.urlopen(urllib.request.Request(f"{URL}/v1/openapi.json", headers=HOST), timeout=30) as answer:
        document = json.load(answer)
    with open(DOCUMENT, "w") as file:
        json.dump(document, file)
    sys.path.insert(0, PLACE)
    wanted = operations(document)
    tools = {"openapi-python-client": openapi_python_client}
    if shutil.which("java"):
        tools["openapi-generator-cli"] = openapi_generator
    else:
        print("SKIPPED: OpenAPI Generator needs a Java runtime, and there is none here")
    for name, tool in tools.items():
        status = tool(wanted)
        if status not in ("delivered", "read"):
            sys.exit(f"the message of {name}'s client is {status}")
        print(f"a client of {name} has all {len(wanted)} operations and sent bob a message")


main()
