import ArgumentParser
import Earshot
import EarshotClient
import EarshotDiscovery
import Foundation
import Logging
import Testing

@testable import earshotd

@Suite struct SettingsFileTests {
    /// Section 6 of the design, word for word.
    static let example = """
        [peer]
        name = alice                 # default: the host name
        service_type = earshot
        port = 47110
        encryption = required        # required | optional | none
        [identity]
        certificate =                # PEM files; empty: made once, kept in the state directory
        private_key =
        authorities =                # peers whose certificate one of these signed are trusted
        [discovery]
        backend = auto               # auto | avahi | embedded | none
        advertise = yes
        browse = yes
        peers =                      # [PEERID@]host:port, comma-separated: reached without discovery
        [discovery.info]
        room = kitchen               # the advertisement's TXT pairs
        [invitations]
        from_unknown = ask           # ask | accept | reject
        from_trusted = accept        # accept | ask
        timeout = 30s
        [groups]
        invitations = ask            # ask | accept | reject
        files = accept               # accept | ask
        [messages]
        inbox_limit = 10000          # messages; inbox_size bounds bytes
        inbox_size = 256M
        inbox_age = 30d              # of read ones
        outbox_age = 7d
        receipts = yes               # tell senders when a message was read
        [resources]
        accept = session             # session | ask
        directory =                  # empty: received files stay in the spool until fetched
        on_conflict = rename         # rename | overwrite | skip
        max_size =
        quota = 20G
        reserve = 5%                 # of the file system, left free
        [control]
        socket =
        group =                      # the packaged system service sets earshot
        [log]
        level = info

        """

    @Test func theExampleOfTheDesignIsAccepted() throws {
        let settings = try load(file: Self.example)
        #expect("\(settings.node.displayName)" == "alice")
        #expect(settings.node.discoveryInfo == ["room": "kitchen"])
        #expect(settings.group == nil)
    }

    @Test(arguments: ["required", "optional", "none"]) func theEncryptionPreferenceIsRead(preference: String) throws {
        #expect(try load(file: "[peer]\nencryption = \(preference)\n").node.encryption.rawValue == preference)
        #expect(try load(environment: ["EARSHOT_PEER_ENCRYPTION": preference]).settings.node.encryption.rawValue == preference)
    }

    /// Files that cannot be used are named with the setting that names them.
    @Test func theIdentityIsCheckedAtTheStart() throws {
        #expect(try load(environment: ["EARSHOT_IDENTITY_CERTIFICATE": ""]).settings.checkIdentity()?.id == nil)
        for (variables, words) in [
            (["CERTIFICATE": "/nothing"], "no private_key"), (["PRIVATE_KEY": "/nothing"], "no certificate"),
            (["CERTIFICATE": "/nothing", "PRIVATE_KEY": "/nothing"], "there is no certificate /nothing"),
            (["AUTHORITIES": "/nothing"], "there is no authority /nothing"), (["AUTHORITIES": "/dev/null"], "not an ordinary small file"),
        ] {
            let environment = Dictionary(uniqueKeysWithValues: variables.map { ("EARSHOT_IDENTITY_\($0.key)", $0.value) })
            let error = #expect(throws: SettingsError.self) { try load(environment: environment).settings.checkIdentity() }
            #expect(error?.message.contains(words) == true, "\(error?.message ?? "none")")
            #expect(error?.exitCode == 78 && error?.origin != nil)
        }
    }

    /// A value for every key that is not its default.
    static let other = """
        # a comment
        [peer]
        name = "alice #2"   ; another
        service_type=robots
        port = 5000
        encryption = optional        # required | optional | none
        [identity]
        certificate = /etc/earshot/alice.pem
        private_key = /etc/earshot/alice.key
        authorities = /etc/earshot/ca.pem, /etc/earshot/other.pem
        [discovery]
        backend = embedded
        advertise = no
        browse = off
        peers = 10.0.0.7:47110, [fe80::1%eth0]:47110 ,host.example.org:1
        [discovery.info]
        room = kitchen # by the window
        Empty =
        [invitations]
        from_unknown = reject
        from_trusted = ask
        paired_only = yes
        timeout = 6min
        [groups]
        invitations = reject
        files = ask
        [messages]
        inbox_limit = 7
        inbox_size = 512K
        inbox_age = 2h
        outbox_age = 90d
        receipts = no
        [resources]
        accept = ask
        directory = /srv/received files
        on_conflict = skip
        max_size = 1G
        quota = 3
        reserve = 2.5%
        send_limit = 10M
        receive_limit = 1K
        [localsend]
        enabled = yes
        port = 0
        pin = "123 456"
        timeout = 1min
        [control]
        socket = /tmp/here.sock
        group = users
        [log]
        level = debug\r
        """

    @Test func theDirectoryOfReceivedFilesIsCheckedAtTheStart() throws {
        let error = #expect(throws: SettingsError.self) {
            try load(file: "[resources]\ndirectory = /nonexistent/here").checkReceiveDirectory()
        }
        #expect(error?.description.contains("earshotd.conf:2: received files cannot be put there") == true)
        #expect(error?.exitCode == 78)
        #expect(throws: SettingsError.self) { try load(file: "[resources]\ndirectory = /etc/passwd").checkReceiveDirectory() }
        #expect(throws: Never.self) { try load(file: "[resources]\ndirectory = /tmp").checkReceiveDirectory() }
    }

    /// A missing directory may still be mounted. A path that is no directory, or that is read-only, is a fault of the settings.
    @Test(arguments: [("/nonexistent/here", true), ("/tmp", false)])
    func aDirectoryThatIsNotThereIsAwaited(directory: String, isAwaited: Bool) throws {
        let why = try load(file: "[resources]\ndirectory = \(directory)").awaitedReceiveDirectory()
        #expect((why != nil) == isAwaited)
    }

    @Test(arguments: ["/etc/passwd", "/etc/passwd/below"]) func aDirectoryThatIsNoneIsNotAwaited(directory: String) throws {
        let error = #expect(throws: SettingsError.self) {
            try load(file: "[resources]\ndirectory = \(directory)").awaitedReceiveDirectory()
        }
        #expect(error?.exitCode == 78)
    }

    @Test func everyKeyIsRead() throws {
        let settings = try load(file: Self.other)
        #expect(settings.node.encryption == .optional)
        #expect("\(settings.node.displayName)" == "alice #2")
        #expect("\(settings.node.serviceType)" == "robots")
        #expect(settings.node.port == 5000)
        #expect(settings.node.portIsFixed)
        #expect(settings.backend == .embedded)
        #expect(!settings.node.advertise)
        #expect(!settings.node.browse)
        #expect(settings.node.configuredPeers.count == 3)
        #expect(settings.node.discoveryInfo == ["room": "kitchen"])
        #expect(settings.node.fromUnknown == .reject)
        #expect(settings.node.fromTrusted == .ask)
        #expect(settings.node.invitationTimeout == .seconds(360))
        #expect(settings.node.groupInvitations == .reject)
        #expect(settings.node.groupFiles == .ask)
        #expect(settings.node.inboxLimit == 7)
        #expect(settings.node.inboxSize == 524_288)
        #expect(settings.node.inboxAge == .seconds(7200))
        #expect(settings.node.acceptResources == .ask)
        #expect(settings.node.receiveDirectory == "/srv/received files")
        #expect(settings.node.onNameConflict == .skip)
        #expect(settings.node.outboxAge == EarshotLimits.outboxAgeLimit)
        #expect(!settings.node.receipts)
        #expect(settings.node.maximumResourceSize == 1_073_741_824)
        #expect(settings.node.quota == 3)
        #expect(settings.node.reserve == 0.025)
        #expect(settings.node.sendLimit == 10 << 20)
        #expect(settings.node.receiveLimit == 1024)
        #expect(settings.node.localSend.isEnabled && settings.node.localSend.port == 0)
        #expect(settings.node.localSend.pin == "123 456" && settings.node.localSend.timeout == .seconds(60))
        #expect(settings.socket == "/tmp/here.sock")
        #expect(settings.group == "users")
        #expect(settings.logLevel == .debug)
    }

    /// The line that is wrong, and a part of the message about it.
    static let faults: [(file: String, line: Int, words: String)] = [
        ("[peer]\nnmae = x", 2, "unknown key 'nmae' in [peer]; there are name, service_type, port, encryption"),
        ("[peer]\nname = x\n[pear]\n", 3, "unknown section [pear]; there are [peer], [identity], [discovery]"),
        ("name = x", 1, "before any section"),
        ("[peer]\nname", 2, "neither 'key = value'"),
        ("[peer]\n= x", 2, "without a key"),
        ("[peer\n", 1, "closing bracket"),
        ("[peer] name = x\n", 1, "follows the section's closing bracket"),
        ("[peer]\nname = \"x", 2, "closing quote"),
        ("[peer]\nname = \"x\"y", 2, "closing quote"),
        ("[peer]\nname = \(String(repeating: "x", count: 64))", 2, "a display name is 1 to 63 bytes"),
        ("[peer]\nname = a\u{7}b", 2, "a control character"),
        ("[peer]\nservice_type = Robots", 2, "a service type is 1 to 15"),
        ("[peer]\nport = 65536", 2, "a whole number from 0 to 65535"),
        ("[peer]\nport = +5", 2, "a whole number from 0 to 65535"),
        ("[peer]\nport = 99999999999999999999", 2, "a whole number from 0 to 65535"),
        ("[peer]\nencryption = tls", 2, "'tls' is not one of required, optional, none"),
        ("[identity]\ncertificate = x", 2, "'x' is not an absolute path"),
        ("[identity]\nauthorities = /x, y", 2, "'y' is not an absolute path"),
        ("[identity]\nkey = /x", 2, "unknown key 'key' in [identity]; there are certificate, private_key, authorities"),
        ("[invitations]\npaired_only = maybe", 2, "'maybe' is not yes or no"),
        ("[groups]\ninvitations = allow", 2, "'allow' is not one of ask, accept, reject"),
        ("[groups]\naccept = ask", 2, "unknown key 'accept' in [groups]; there are"),
        ("[groups]\nfiles = reject", 2, "'reject' is not one of accept, ask"),
        ("[resources]\naccept = all", 2, "one of session, ask"),
        ("[resources]\nquota = 1G\ndirectory = received", 3, "an absolute path"),
        ("[resources]\non_conflict = replace", 2, "one of rename, overwrite, skip"),
        ("[messages]\noutbox_age = 91d", 2, "90d"), ("[messages]\noutbox_age = 0", 2, "1s"), ("[messages]\nreceipts = maybe", 2, "yes"),
        ("[discovery]\nbackend = bonjour", 2, "one of auto, avahi, embedded, none"),
        ("[discovery]\nadvertise = maybe", 2, "'maybe' is not yes or no"),
        ("[discovery]\npeers = nowhere", 2, "nowhere"),
        ("[discovery.info]\nid = x", 2, "Earshot's own"),
        ("[discovery.info]\nroom = \(String(repeating: "x", count: 251))", 2, "longer than 255 bytes"),
        ("[discovery.info]\na = \(String(repeating: "x", count: 250))\nb = \(String(repeating: "x", count: 200))", 3, "400 bytes together"),
        (
            "[discovery.info]\na = \(String(repeating: "x", count: 250))\nb = \(String(repeating: "x", count: 200))\nc =", 3,
            "400 bytes together"
        ),
        ("[discovery.info]\nküche = a", 2, "printable ASCII"), ("[discovery.info]\nID =", 2, "Earshot's own"),
        ("[discovery]\ninfo.room = a", 2, "unknown key 'info.room'"),
        ("[invitations]\nfrom_unknown = block", 2, "one of ask, accept, reject"),
        ("[invitations]\nfrom_trusted = reject", 2, "one of accept, ask"),
        ("[invitations]\ntimeout = 0s", 2, "a time from 1s to 1d"),
        ("[invitations]\ntimeout = 2d", 2, "a time from 1s to 1d"),
        ("[invitations]\ntimeout = soon", 2, "a time such as 30s"),
        ("[invitations]\ntimeout = 1h 30", 2, "a time such as 30s"),
        ("[invitations]\ntimeout = 5m", 2, "a time such as 30s"),
        ("[invitations]\ntimeout = 23h 61min", 2, "a time from 1s to 1d"),
        ("[peer]\nport = x\nport = 5000", 2, "a whole number from 0 to 65535"),
        ("[invitations]\ntimeout = 99999999999999999d", 2, "a time from 1s to 1d"),
        ("[messages]\ninbox_limit = 0", 2, "a whole number from 1"),
        ("[messages]\ninbox_size = 256MB", 2, "a size such as 512K"),
        ("[messages]\ninbox_size = 99999999999G", 2, "a size below"),
        ("[resources]\nquota = 20ß", 2, "'20ß' is not a size such as 512K"),
        ("[resources]\nreserve = 5", 2, "a percentage"),
        ("[resources]\nreserve = 100%", 2, "a percentage"),
        ("[resources]\nreserve = nan%", 2, "a percentage"),
        ("[resources]\nsend_limit = 1023", 2, "'1023' is not a rate such as 512K or 10M"),
        ("[resources]\nsend_limit = 1025G", 2, "a rate such as"), ("[resources]\nsend_limit = 10MB/s", 2, "a rate such as"),
        ("[resources]\nreceive_limit = none", 2, "a rate such as"), ("[resources]\nreceive_limit = 99999999999G", 2, "a rate such as"),
        ("[localsend]\nenabled = maybe", 2, "'maybe' is not yes or no"),
        ("[localsend]\nport = 65536", 2, "a whole number from 0 to 65535"),
        ("[localsend]\npin = 12345", 2, "a PIN has 6 to 64 characters"),
        ("[localsend]\npin = \(String(repeating: "x", count: 65))", 2, "a PIN has 6 to 64 characters"),
        ("[localsend]\ntimeout = 4s", 2, "a time from 5s to 1d"), ("[localsend]\ntimeout = 25h", 2, "a time from 5s to 1d"),
        ("[localsend]\nname = phone", 2, "unknown key 'name' in [localsend]; there are enabled, port, pin, timeout"),
        ("[control]\nsocket = earshot.sock", 2, "an absolute path"),
        ("[log]\nlevel = loud", 2, "one of trace, debug, info"),
    ]

    @Test(arguments: faults.indices) func aFaultIsNamedWithFileAndLine(_ index: Int) throws {
        let fault = Self.faults[index]
        try withFile(fault.file) { path in
            let error = #expect(throws: SettingsError.self) { try load(flags: .init(config: path)) }
            #expect(error?.origin == .file(path: path, line: fault.line))
            #expect(error?.message.contains(fault.words) == true, "\(error?.message ?? "")")
            #expect(error?.exitCode == 78)
            #expect(error?.description.hasPrefix("\(path):\(fault.line): ") == true)
        }
    }

    @Test func theLastValueStands() throws {
        let settings = try load(
            file: """
                [peer]
                name = alice
                port = 1
                [log]
                level = debug
                [discovery.info]
                room = kitchen
                Rack = 1
                [peer]
                name = bob
                port =
                [discovery.info]
                ROOM = attic
                """)
        #expect("\(settings.node.displayName)" == "bob")
        #expect(settings.node.port == 47110 && !settings.node.portIsFixed)
        #expect(settings.node.discoveryInfo == ["ROOM": "attic", "Rack": "1"])
    }

    @Test(arguments: [
        ("90", 90), ("90s", 90), ("2 min", 120), ("1h30min", 5400), ("1h 30min 5s", 5405), ("1d", 86400), ("0d 1s", 1),
    ]) func timesAddUp(_ text: String, _ seconds: Int) throws {
        #expect(try load(file: "[invitations]\ntimeout = \(text)").node.invitationTimeout == .seconds(seconds))
    }

    /// 0 and an empty value are no limit.
    @Test(arguments: [("0", nil), ("0M", nil), ("", nil), ("1K", 1024), ("1024G", 1 << 40), ("1024", 1024)] as [(String, UInt64?)])
    func ratesOfFiles(_ text: String, _ rate: UInt64?) throws {
        let settings = try load(file: "[resources]\nsend_limit = \(text)\nreceive_limit = \(text)")
        #expect(settings.node.sendLimit == rate && settings.node.receiveLimit == rate)
    }

    @Test(arguments: ["123456", String(repeating: "é", count: 64), ""]) func aPINHasItsLimits(_ pin: String) throws {
        #expect(try load(file: "[localsend]\npin = \(pin)").node.localSend.pin == (pin.isEmpty ? nil : pin))
        #expect(try load(environment: ["EARSHOT_LOCALSEND_PIN": pin]).settings.node.localSend.pin == (pin.isEmpty ? nil : pin))
    }

    /// The report, and every error about a PIN, say that there is one, and never which.
    @Test(arguments: [
        "[localsend]\npin = 9876543", "[localsend]\npin = 98765", "[localsend]\npin 9876543", "[localsend]\npin = \"9876543",
        "[localsend]\npin = \"9876543\" 9876543", "[localsend]\npin = \(String(repeating: "98765", count: 13))",
    ]) func aPINIsNeverShown(_ file: String) throws {
        try withFile(file) { path in
            do {
                let loaded = try load(flags: .init(config: path))
                #expect(loaded.settings.node.localSend.pin == "9876543")
                #expect(loaded.report == ["\(path): ok", "localsend.pin = (hidden) (\(path):2)"])
                let list = ControlAPI.SettingList(loaded, started: loaded, isRunning: false)
                #expect(list.settings.first { $0.key == "localsend.pin" }?.value == "(hidden)")
                #expect(!String(decoding: try ControlJSON.encode(list), as: UTF8.self).contains("98765"))
            } catch {
                #expect(!"\(error)".contains("98765"))
            }
        }
        let error = #expect(throws: SettingsError.self) { try load(environment: ["EARSHOT_LOCALSEND_PIN": "98765"]) }
        #expect(error?.description == "$EARSHOT_LOCALSEND_PIN: a PIN has 6 to 64 characters")
    }

    @Test func notUTF8IsNamedWithItsLine() throws {
        try withFile(Array("[peer]\nname = ".utf8) + [0xFF, 0xFE, 0x0A]) { path in
            let error = #expect(throws: SettingsError.self) { try load(flags: .init(config: path)) }
            #expect(error?.origin == .file(path: path, line: 2))
        }
    }

    @Test func aFaultInTheFileCountsUnderAFlagToo() throws {
        try withFile("[peer]\nport = x") { path in
            _ = #expect(throws: SettingsError.self) { try load(flags: .init(config: path, port: "5000")) }
        }
    }

    @Test func aHugeFileIsRefused() throws {
        try withFile([UInt8](repeating: UInt8(ascii: "#"), count: INIFile.byteLimit + 1)) { path in
            let error = #expect(throws: SettingsError.self) { try load(flags: .init(config: path)) }
            #expect(error?.message.contains("larger than 1 MiB") == true)
        }
    }

    @Test func anyBytesAreReadOrRefused() throws {
        var generator = SystemRandomNumberGenerator()
        let seeds = Self.faults.map { Array($0.file.utf8) } + [Array("[peer]\nname = \"alice\" # x\n".utf8)]
        for _ in 0..<20_000 {
            var bytes = seeds[Int.random(in: seeds.indices, using: &generator)]
            for _ in 0..<Int.random(in: 1...4, using: &generator) where !bytes.isEmpty {
                bytes[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            do throws(SettingsError) {
                var layers = SettingLayers()
                try layers.readFile(INIFile(bytes: bytes, path: "f"), path: "f")
                _ = try Settings(layers, hostName: "h")
            } catch {
                #expect(!error.message.isEmpty && !error.message.contains("\n"))
            }
        }
    }

    @Test func theExampleFileHoldsTheDefaults() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let example = try String(contentsOf: root.appendingPathComponent("Config/earshotd.conf"), encoding: .utf8)
        // A commented setting is a `#` right before a key; other comments have a blank after it.
        let opened = example.split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.hasPrefix("#") && !$0.hasPrefix("# ") ? String($0.dropFirst()) : String($0) }.joined(separator: "\n")
        let file = try INIFile(bytes: Array(opened.utf8), path: "example")
        #expect(file.entries.map { "\($0.section).\($0.key)" } == Setting.all.map(\.name))
        #expect(try INIFile(bytes: Array(example.utf8), path: "example").entries.isEmpty)
        let set = try load(file: opened)
        let defaults = try load(file: "")
        // The default port may be replaced by a free one, and a port that is set may not.
        #expect(Setting.all.filter { !$0.isEqual(set, defaults) }.map(\.name) == ["peer.port"])
        #expect(set.node.port == defaults.node.port && set.node.portIsFixed && !defaults.node.portIsFixed)
    }
}

@Suite struct SettingTests {
    @Test func everySettingHasItsPlace() {
        #expect(Set(Setting.all.map(\.name)).count == Setting.all.count)
        #expect(Setting.all.filter { !Setting.sections.contains(String($0.section)) }.isEmpty)
        #expect(Set(Setting.all.map { $0.path as AnyKeyPath }).count == Setting.all.count)
    }

    /// The comment in `Config/earshotd.conf` is the help of the flag, too.
    @Test func everyWordOfAChoiceIsExplained() {
        for setting in Setting.all {
            #expect(setting.summary.hasSuffix(".") || setting.summary.hasSuffix(")."), "\(setting.name)")
            let comment = setting.summary + setting.details
            for word in setting.choices { #expect(comment.contains(word), "\(setting.name): \(word)") }
        }
    }

    @Test func theFlagsHaveTheHelpAndTheChoicesOfTheirSettings() throws {
        let help = EarshotDaemon.helpMessage(columns: 1000)
        let script = EarshotDaemon.completionScript(for: .bash)
        let settings = Setting.all.filter { $0.flag != nil }
        #expect(settings.count == 6)
        for setting in settings {
            let flag = try #require(setting.flag)
            #expect(help.contains("--\(flag.name) <\(flag.value)>") && help.contains(setting.summary), "\(setting.name)")
            let words = setting.choices.map { "'\($0)'" }.joined(separator: "$'\\n'")
            #expect(script.contains(words) || words.isEmpty, "\(setting.name)")
        }
    }

    /// A program that uses the library has the defaults of the daemon, except for the timeout of an invitation.
    @Test func theLibraryHasTheSameDefaults() throws {
        let node = try load(file: "").node
        var library = Node.Configuration(
            displayName: node.displayName, serviceType: node.serviceType, stateDirectory: try #require(node.stateDirectory))
        #expect(library.invitationTimeout == .seconds(30) && node.invitationTimeout == .seconds(300))
        library.invitationTimeout = node.invitationTimeout
        #expect(String(describing: library) == String(describing: node))
    }
}
