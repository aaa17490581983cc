"""Types every command of the documentation that three machines can answer, in an order in which each makes sense."""
import json
import re
import signal

from commands import articles, blocks, typed
from scene import Failed, until


def play(scene):
    for part in (strangers, talk, files, handlers, streams, comparison, trust, groups, api, python, settings, devices, identity, daemon, other_answers):
        print(f"{part.__name__.replace('_', ' ')}:")
        part(scene)


def invited(scene, name):
    until(f"{name} is invited", lambda: scene.json(name, "earshot invitations")["invitations"])


def connected(scene, name):
    def attempt():
        sessions = scene.json(name, "earshot sessions")["sessions"]
        return sessions and all(member["state"] == "connected" for session in sessions for member in session["members"])

    until(f"{name} is connected", attempt)


def agree(scene, command="earshot invite bob"):
    """alice asks bob, who agrees."""
    asking = scene.begin("alice", command)
    invited(scene, "bob")
    return asking


def strangers(scene):
    for name in ("alice", "bob", "carol"):
        until(f"{name} sees the others", lambda: len(scene.json(name, "earshot peers")["peers"]) == 2)
    scene.run("alice", "earshot peers", says="bob")
    watching = scene.begin("alice", "earshot peers --watch")
    watching.says("bob")
    watching.interrupt()
    scene.run("alice", "earshot policy explain bob", says=r"invite +ask +invitations.from_unknown = ask")


def talk(scene):
    asking = agree(scene, "earshot invite bob --context 'shall we talk?'")
    scene.run("bob", "earshot invitations", says=r"shall we talk\?")
    scene.run("bob", "earshot accept alice", says="accepted the invitation from alice")
    asking.ends()
    connected(scene, "bob")
    scene.run("bob", "earshot invitations --all", says="alice .* incoming +accepted")
    scene.run("alice", "earshot ping bob", says="bob answered in")
    scene.run("alice", "earshot doctor bob", status=(0, 1), says="ok +peer answer")
    scene.run("alice", "earshot send bob hello")
    scene.run("bob", "earshot receive", says="alice: hello")
    scene.run("bob", "earshot receive --all --since 2h", says="alice: hello")
    scene.run("alice", "earshot send bob build is green")
    scene.run("alice", "make 2>&1 | earshot send bob -")
    scene.run("alice", "earshot send --all lunch")
    scene.run("alice", "earshot send bob --queue see you")
    scene.run("alice", "earshot outbox list")
    until("the queued message is there", lambda: unread(scene, "bob") == 4)
    if scene.run("bob", "earshot receive --raw --count 1") != "build is green":
        raise Failed("the bytes of the first message are not what was sent")
    listening = scene.begin("bob", "earshot receive --follow")
    listening.says("see you")
    scene.run("alice", "earshot send bob --mode unreliable 42")
    listening.says("42")
    (scene.home("alice") / "log").write_text("one\ntwo\n")
    lines = scene.begin("alice", "tail -f log | earshot send bob --lines")
    listening.says("alice: two")
    lines.interrupt()
    listening.interrupt()


def unread(scene, name):
    """How many messages wait there."""
    done = scene.quiet(name, "curl -s --unix-socket $S 'http://localhost/v1/messages?state=unread'")
    return len(json.loads(done.stdout)["messages"])


def files(scene):
    alice, bob = scene.home("alice"), scene.home("bob")
    (alice / "report.pdf").write_bytes(b"report" * 1000)
    (alice / "plan.pdf").write_bytes(b"plan")
    (alice / "a.iso").write_bytes(b"image" * 100_000)
    (alice / "photos").mkdir()
    (alice / "photos/one").write_text("one")
    scene.run("alice", "earshot file send bob report.pdf")
    scene.run("bob", "earshot file get")
    if (bob / "report.pdf").read_bytes() != (alice / "report.pdf").read_bytes():
        raise Failed("the file is not what was sent")
    scene.run("alice", "earshot file send bob a.iso --queue")
    scene.run("alice", "earshot file send bob a.iso --digest sha256")
    scene.run("alice", "earshot file send bob a.iso --limit 10M")
    scene.run("alice", "earshot file send bob photos/")
    scene.run("bob", "earshot file list", says=r"photos/ .*completed")
    scene.run("bob", "earshot file get photos -o - | tar t", says="photos/one")
    scene.run("bob", "earshot file delete photos", says="deleted photos")
    (alice / "photos/cache").mkdir()
    (alice / "photos/cache/thumbnail").write_text("small")
    (alice / "photos/two.cr2").write_text("raw")
    scene.run("alice", "earshot file send bob photos/ --exclude '*.cr2' --exclude cache")
    names = scene.quiet("bob", "earshot file get photos -o - | tar t").stdout.split()
    if names != ["photos/", "photos/one"]:
        raise Failed(f"the excluded entries are not left out: {names}")
    scene.quiet("bob", "earshot file delete photos")
    # Where a person is asked, an offer waits.
    settings_of_bob = bob / ".config/earshot"
    settings_of_bob.mkdir(parents=True)
    (settings_of_bob / "earshotd.conf").write_text("[resources]\naccept = ask\n")
    reload(scene, "bob", "resources.accept")
    for command, status in (("earshot file accept report.pdf", 0), ("earshot file refuse report.pdf", 77), ("", 130)):
        offer = scene.begin("alice", "earshot file send bob report.pdf")
        until("the offer is there", lambda: [row for row in scene.json("bob", "earshot file list")["resources"] if row["state"] == "offered"])
        if command:
            scene.run("bob", command)
        else:
            scene.run("alice", "earshot file cancel report.pdf")
            status = offer.process.wait(timeout=60)
        offer.ends(status)
    (settings_of_bob / "earshotd.conf").write_text("")
    reload(scene, "bob", "resources.accept")


def handlers(scene):
    """bob's commands for what arrives. The desktop's programs are replaced by some that write to files."""
    alice, bob = scene.home("alice"), scene.home("bob")
    scene.tool("notify-send", 'echo "$*" >>"$HOME/notified"')
    # Without a file, it prints its input.
    scene.tool("lp", 'cat "$@" >>"$HOME/printed"')
    scene.tool("wl-copy", 'cat >"$HOME/clipboard"; echo "$*" >>"$HOME/clipboard"')
    scene.tool("wl-paste", 'if [ "$1" = --watch ]; then shift; echo copied | "$@"; else echo "a picture, $2"; fi')
    scene.tool("xclip", 'if [ "$3" = -o ]; then echo "selected in $2"; else cat >"$HOME/clipboard.$2"; fi')
    scene.tool("git", "echo pulled")
    (bob / "Downloads").mkdir()
    (bob / "project").mkdir()

    def holds(name, words):
        path = bob / name
        until(f"{name} holds {words!r}", lambda: path.is_file() and words in path.read_text())

    notifying = scene.begin("bob", """earshot on message -- sh -c 'notify-send -- "$EARSHOT_FROM" "$(cat)"'""")
    scene.quiet("alice", "earshot send bob dinner is ready")
    holds("notified", "-- alice dinner is ready")
    notifying.interrupt()
    notifying = scene.begin("bob", """earshot on invitation.received -- sh -c 'notify-send -- "$EARSHOT_FROM invites you"'""")

    def is_notified():
        # An invitation before the command listens is not seen.
        scene.quiet("carol", "earshot invite bob --timeout 1")
        return "carol invites you" in (bob / "notified").read_text()

    until("bob is notified of the invitation", is_notified)
    notifying.interrupt()
    printing = scene.begin("bob", "earshot on file --from alice -- lp")
    scene.quiet("alice", "earshot file send bob plan.pdf")
    holds("printed", "plan")
    printing.interrupt()
    saving = scene.begin("bob", "earshot file get --follow -o Downloads")
    (alice / "notes").write_text("notes")
    scene.quiet("alice", "earshot file send bob notes")
    saving.says("Downloads/notes")
    holds("Downloads/notes", "notes")
    saving.interrupt()
    copying = scene.begin("bob", "earshot on message --from alice --type text/plain -- wl-copy")
    scene.run("alice", "wl-paste --watch earshot send bob -")
    holds("clipboard", "copied")
    copying.interrupt()
    copying = scene.begin("bob", "earshot on message --from alice --type text/plain -- xclip -selection clipboard")
    scene.run("alice", "xclip -selection clipboard -o | earshot send bob -")
    holds("clipboard.clipboard", "selected in clipboard")
    copying.interrupt()
    copying = scene.begin("bob", """earshot on message --from alice --type 'image/*' -- sh -c 'wl-copy --type "$EARSHOT_CONTENT_TYPE"'""")
    scene.run("alice", "wl-paste --type image/png | earshot send bob - --type image/png")
    holds("clipboard", "a picture, image/png\n--type image/png")
    copying.interrupt()
    printing = scene.begin("bob", "earshot on message --from alice --type text/plain -- lp")
    scene.quiet("alice", "earshot send bob to be printed")
    holds("printed", "to be printed")
    printing.interrupt()
    building = scene.begin("bob", "earshot on message --type text/x-push -- sh -c 'cd project && git pull --quiet && make'")
    scene.run("alice", "earshot send bob --type text/x-push main")
    building.says("built")
    building.interrupt()
    scene.tool("uptime", "echo up 3 days")
    replying = scene.begin("bob", "earshot on message --from alice --type text/x-status --reply -- uptime")
    scene.run("alice", "earshot ask bob --type text/x-status status", says="up 3 days")
    replying.interrupt()
    answering = scene.begin("bob", "earshot on message --reply -- echo 12 GB")
    scene.run("alice", "earshot ask bob disk space", says="12 GB")
    answering.interrupt()


def reload(scene, name, key):
    """Has the settings read again, and waits until the daemon says so."""
    def heard():
        return sum(event["type"] == "settings.reloaded" and key in event["changed"] for event in scene.events(name))

    before = heard()
    scene.daemons[name].send_signal(signal.SIGHUP)
    until(f"{name} has read its settings", lambda: heard() > before)


def streams(scene):
    accepting = scene.begin("bob", "earshot stream accept backup | tar x")
    scene.run("alice", "tar c photos | earshot stream open bob backup")
    accepting.ends()
    if (scene.home("bob") / "photos/one").read_text() != "one":
        raise Failed("the stream is not what was sent")
    accepting = scene.begin("bob", "earshot stream accept --from alice --timeout 1min")
    scene.quiet("alice", "echo words | earshot stream open bob words")
    accepting.ends()
    accepting.says("words")
    scene.run("alice", "earshot stream list", says="backup")


def comparison(scene):
    question = "do the digits match? [y/N] "
    finish = [scene.at_terminal(name, f"earshot verify {other}", question, "y") for name, other in (("alice", "bob"), ("bob", "alice"))]
    documented = next(block for block in blocks((articles / "earshot-security.md").read_text()) if "verify bob" in block[0])[1:]
    said = finish[0](), finish[1]()
    digits = [re.search(r"^\d{6}$", text, re.MULTILINE)[0] for text in said]
    if digits[0] != digits[1]:
        raise Failed(f"the digits differ: {said}")
    for line in documented:
        # The digits are others each time, and the second to ask does not wait.
        if "waiting" not in line and not re.fullmatch(r"\d{6}", line) and line not in said[0]:
            raise Failed(f"earshot verify does not say {line!r} any more:\n{said[0]}")


def trust(scene):
    scene.run("alice", "earshot distrust bob")
    scene.run("alice", "earshot trust bob")
    scene.run("alice", "earshot trust bob --for 1h")
    scene.run("alice", "earshot distrust bob")
    scene.run("alice", "earshot peer name bob printer", says=r"bob \([A-Z2-7]{12}\) is called printer here")
    scene.run("alice", "earshot peer name printer --remove", says="bob has its own name")
    # Who has compared the digits trusts, and would agree by itself.
    scene.quiet("bob", "earshot distrust alice")
    asking = agree(scene)
    scene.run("bob", "earshot accept alice")
    asking.ends()
    scene.run("alice", "earshot leave bob")


def groups(scene):
    scene.run("alice", "earshot group create team bob carol", says=r"^[0-9a-f-]{36}\n")
    for name in ("bob", "carol"):
        invited(scene, name)
        if name == "bob":
            scene.run(name, "earshot invitations", says="team by")
        scene.run(name, "earshot accept alice", says="accepted the invitation from alice to team")
    scene.run("alice", "earshot group list", says="team")

    def stands(name, count):
        members = scene.json(name, "earshot group show team")["members"]
        return len([member for member in members if member["state"] == "connected"]) == count

    for name in ("alice", "bob", "carol"):
        until(f"the group stands on {name}", lambda: stands(name, 3))
    scene.run("alice", "earshot group show team", says="carol +[A-Z2-7]{12} +connected")
    scene.run("bob", "earshot send --group team standup in five minutes")
    scene.run("carol", "earshot receive --group team", says="bob in team: standup in five minutes")
    scene.run("alice", "earshot file send --group team plan.pdf")
    scene.run("alice", "earshot group rename team crew")
    scene.run("alice", "earshot group remove crew carol")
    scene.run("alice", "earshot group create party --from crew")
    scene.run("alice", "earshot group dissolve crew")
    # Of one peer only one invitation waits: this makes room for the next.
    invited(scene, "bob")
    scene.quiet("bob", "earshot reject alice")


def api(scene):
    asking = scene.begin("alice", documented_curl("invitations?wait=true"))
    invited(scene, "bob")
    if not any(row.get("context") for row in scene.json("bob", "earshot invitations")["invitations"]):
        raise Failed("the invitation has no context")
    scene.quiet("bob", "earshot accept alice")
    asking.ends()
    connected(scene, "alice")
    for part in ("v1/status", "v1/peers\n", "-d '{\"to\": [\"bob\"]"):
        scene.run("alice", documented_curl(part))
    scene.run("alice", "earshot metrics > earshot.prom")
    if "earshot_peers" not in (scene.home("alice") / "earshot.prom").read_text():
        raise Failed("the figures lack earshot_peers")
    output = next(output for _, command, output in typed(articles / "earshot-api.md") if "peers/nobody" in command)
    scene.run("alice", documented_curl("peers/nobody"), says=re.escape("\n".join(output).strip()))
    (scene.home("alice") / "requests").write_text('{"to": ["bob"], "body": "one"}\n{"to": ["bob"], "body": "two"}\n')
    scene.run("alice", documented_curl("@requests"), says="delivered")
    scene.run("alice", documented_curl("-T report.pdf"), says="completed")
    taking = scene.begin("bob", documented_curl("streams/next/content"))
    scene.run("alice", documented_curl("tar c photos"))
    taking.ends()
    events = scene.begin("alice", documented_curl("v1/events"))
    until("the daemon has sent its first event", lambda: scene.quiet("bob", "earshot send alice event").returncode == 0)
    events.says('"seq":')
    events.interrupt()


def documented_curl(part):
    """The command of the API's page that has this in it."""
    found = [command for _, command, _ in typed(articles / "earshot-api.md") if part in f"{command}\n"]
    if len(found) != 1:
        raise Failed(f"earshot-api.md has {len(found)} commands with {part}")
    return found[0]


def python(scene):
    """The API's program, with this machine's socket in place of the service's."""
    text = (articles / "earshot-api.md").read_text(encoding="utf-8")
    program = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
    path = scene.environment("alice")["S"]
    (scene.home("alice") / "program.py").write_text(program.replace("/run/earshot/earshot.sock", path))
    running = scene.begin("alice", "python3 -u program.py")
    until("the program's message is there", lambda: "hello from Python" in scene.quiet("bob", "earshot receive").stdout)
    running.says("'status': 'delivered'")

    def hears():
        scene.quiet("bob", "earshot send alice 'hello Python'")
        return "bob hello Python" in running.said()

    until("the program hears of a message", hears)
    running.interrupt()
    passing, streaming = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1:]
    (scene.home("alice") / "pass.py").write_text(passing.replace("/run/earshot/earshot.sock", path))
    scene.run("alice", "python3 pass.py", says="'state': 'completed'")
    for name in ("alice", "bob"):
        program = streaming.replace("/run/earshot/earshot.sock", scene.environment(name)["S"])
        (scene.home(name) / "stream.py").write_text(program)
    taking = scene.begin("bob", "python3 stream.py backup > streamed")
    scene.run("alice", "tar c photos | tee sent | python3 stream.py bob backup")
    taking.ends()
    if (scene.home("bob") / "streamed").read_bytes() != (scene.home("alice") / "sent").read_bytes():
        raise Failed("the stream is not what was sent")


def settings(scene):
    scene.run("alice", "earshot config list", says=r"(?m)^peer\.name +alice +--name$")
    scene.run("alice", "earshot config get log.level --verbose", says=r"^log\.level = info \(default\)$")
    scene.run("alice", "sudo earshot config set log.level debug", says="set log.level in .*/earshotd.conf.d/50-cli.conf")
    if scene.quiet("alice", "earshot config get log.level").stdout != "debug\n":
        raise Failed("the value is not in effect")
    scene.run("alice", "sudo earshot config unset log.level", says="removed log.level")
    scene.run("alice", "earshot config get resources.directory", says=r"^\n$")
    scene.run("alice", "sudo earshot config set invitations.from_unknown reject", says="set invitations.from_unknown")
    refused = scene.quiet("alice", "earshot config set peer.port none")
    if refused.returncode != 64 or "cannot set peer.port: 'none' is not a whole number" not in refused.stderr:
        raise Failed(f"a wrong value is not refused: {refused}")
    scene.quiet("alice", "earshot config unset invitations.from_unknown")
    command, output = next((command, output) for _, command, output in typed(articles / "earshotd.conf.md") if "bad.conf" in command)
    said = scene.run("carol", f"{command}", status=78) + scene.quiet("carol", command).stderr
    for line in output:
        if line and line not in said:
            raise Failed(f"{command}\nsays {said!r}, not {line!r}")
    # That of another place is not meant.
    scene.run("carol", "earshotd --check-config", says=r"(?m)^/.*/carol/\.config/earshot/earshotd\.conf: not present, using defaults$")


def devices(scene):
    """A phone sends files and a text to carol."""
    scene.run("carol", "sudo earshot config set localsend.enabled yes", says="set localsend.enabled")
    port = until("carol listens to devices", lambda: scene.json("carol", "earshot status")["localsend"].get("port"))
    (scene.home("phone") / "beach.jpg").write_bytes(b"beach" * 100_000)
    (scene.home("phone") / "dunes.jpg").write_bytes(b"dunes" * 1000)
    sending = scene.device("send", "127.0.0.1", str(port), "beach.jpg", "dunes.jpg")
    invited(scene, "carol")
    scene.run("carol", "earshot invitations", says=r"phone +LS-[A-Z2-7]{9} +incoming +pending .* 2 files, 505.0 kB: beach.jpg \(500.0 kB\)")
    scene.run("carol", "earshot accept phone", says=r"accepted from phone: 2 files")
    sending.ends()
    scene.run("carol", "earshot file get", says="beach.jpg\ndunes.jpg")
    for name in ("beach.jpg", "dunes.jpg"):
        if (scene.home("carol") / name).read_bytes() != (scene.home("phone") / name).read_bytes():
            raise Failed(f"{name} is not what the phone has sent")
    text = scene.device("send", "127.0.0.1", str(port), "--text", "hello from the phone")
    invited(scene, "carol")
    scene.quiet("carol", "earshot accept phone")
    text.ends()
    if "phone: hello from the phone" not in scene.quiet("carol", "earshot receive").stdout:
        raise Failed("the text is not in the inbox")
    receiving = scene.device("serve", "received", "--asking", "required")
    receiving.says('"port": ')
    own = scene.home("phone") / "identity"
    scene.register("carol", port, own / "certificate.pem", own / "key.pem", re.search(r'"port": (\d+)', receiving.said())[1])
    scene.run("carol", "earshot peers", says="phone +LS-[A-Z2-7]{9} +nearby +localsend +unknown")
    stranger = scene.quiet("carol", "earshot file send phone beach.jpg")
    if stranger.returncode != 77 or not re.search("LS-[A-Z2-7]{52}", stranger.stderr):
        raise Failed(f"a device that is not trusted is sent to by its name: {stranger}")
    scene.run("carol", "earshot trust phone", says="phone is trusted")
    scene.run("carol", "earshot file send phone beach.jpg")
    if (scene.home("phone") / "received/beach.jpg").read_bytes() != (scene.home("carol") / "beach.jpg").read_bytes():
        raise Failed("the phone has not received the file")
    scene.run("carol", "earshot send phone 'see you at 5'")
    receiving.says("see you at 5")
    receiving.interrupt()


def identity(scene):
    scene.run("carol", "earshot identity show", says="P-256")
    scene.run("carol", "earshot identity export -o backup")
    if (scene.home("carol") / "backup").stat().st_mode & 0o777 != 0o600:
        raise Failed("the exported identity can be read by others")
    scene.run("carol", "earshot identity new")


def daemon(scene):
    scene.home("dave")
    running = scene.begin("dave", "earshotd --config /dev/null --name bob --state-directory bob --socket bob.sock")
    until("the daemon answers", lambda: scene.quiet("dave", "EARSHOT_SOCKET=bob.sock earshot status").returncode == 0)
    scene.run("dave", "EARSHOT_SOCKET=bob.sock earshot status", says="bob")
    scene.run("dave", "earshotd --backup bob-copy --state-directory bob", says="bob-copy")
    running.interrupt()
    scene.run("alice", "sudo earshot status", says="alice")
    # It exits 1 where something fails on the machine that the tests run on, such as its firewall.
    scene.run("alice", "sudo earshot doctor", status=(0, 1), says="ok +daemon")


def other_answers(scene):
    scene.quiet("alice", "earshot leave bob")
    scene.quiet("bob", "earshot distrust alice")
    for command, says in (("earshot reject alice", "declined|rejected"), ("earshot block alice", "blocked")):
        asking = agree(scene)
        scene.run("bob", command)
        asking.ends(77)
    scene.run("bob", "earshot unblock alice")
