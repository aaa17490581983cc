// swift-tools-version: 6.2
import PackageDescription

/// Every target of ours: Swift 6 mode, and the language's coming defaults, so that nothing has to be migrated later.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

/// The commit that `--version` names: git's, or what EARSHOT_COMMIT says where a tree is built that git knows nothing of (Config/package).
let commit =
    Context.environment["EARSHOT_COMMIT"]
    ?? Context.gitInformation.map { $0.currentCommit.prefix(12) + ($0.hasUncommittedChanges ? "+" : "") }
    ?? "unknown"

let package = Package(
    name: "earshot",
    platforms: [.macOS(.v15)],  // Linux is the platform; this only tells the compiler which standard library it may assume.
    products: [
        // For a program that is a peer itself.
        .library(name: "Earshot", targets: ["Earshot", "EarshotDiscovery"]),
        // For a program that uses this machine's daemon.
        .library(name: "EarshotClient", targets: ["EarshotClient"]),
        // For code that was written for Apple's framework of that name.
        .library(name: "MultipeerConnectivity", targets: ["MultipeerConnectivity"]),
        .executable(name: "earshotd", targets: ["earshotd"]),
        .executable(name: "earshot", targets: ["EarshotCLI"]),
    ],
    dependencies: [
        // The event loops, channels and byte buffers under every connection.
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.2"),
        // TLS 1.3 for channels.
        .package(url: "https://github.com/apple/swift-nio-ssl.git", from: "2.37.6"),
        // Signatures and SHA-256 for the handshake; its extras bring RSA.
        .package(url: "https://github.com/apple/swift-crypto.git", from: "4.5.2"),
        // Makes and reads the X.509 certificate that carries a peer's key through TLS.
        .package(url: "https://github.com/apple/swift-certificates.git", from: "1.21.1"),
        // DER for the above: the public key's SubjectPublicKeyInfo.
        .package(url: "https://github.com/apple/swift-asn1.git", from: "1.7.4"),
        // Deques, heaps and ordered dictionaries for queues and timers.
        .package(url: "https://github.com/apple/swift-collections.git", from: "1.6.0"),
        // The logging interface.
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.2"),
        // Starts, stops and orders the daemon's long-running parts.
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.13.0"),
        // The HTTP server of the control API; without traits it does not pull in Foundation.
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.1", traits: []),
        // The HTTP client of the command line; speaks Unix sockets.
        .package(url: "https://github.com/swift-server/async-http-client.git", from: "1.37.0"),
        // HTTP's types as a channel's messages, in front of Hummingbird on our own socket.
        .package(url: "https://github.com/apple/swift-nio-extras.git", from: "1.35.2"),
        // HTTP methods, statuses and fields as types, shared with Hummingbird.
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0", traits: []),
        // The command line's grammar, help and usage errors.
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.8.2"),
    ],
    targets: [
        .systemLibrary(
            name: "CAvahi",
            providers: [.apt(["libavahi-client-dev", "libavahi-core-dev", "libavahi-common-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .target(
            name: "CLinux", cSettings: [.define("_GNU_SOURCE"), .define("_FORTIFY_SOURCE", to: "2", .when(configuration: .release))]),
        // One function, in a target of its own: another commit compiles just this again.
        .target(name: "CCommit", cSettings: [.define("EARSHOT_COMMIT", to: "\"\(commit)\"")]),
        // The only ways in which a peer's string becomes something shown or a path: shared by daemon and command line.
        .target(name: "EarshotSafety", dependencies: ["CLinux"], swiftSettings: settings),
        // Values that are set once, and notifications of changes, for tasks that wait. Shared by node, daemon and command line.
        .target(name: "EarshotWaiting", swiftSettings: settings),
        // Directories as one run of bytes, and that as directories again: shared by daemon and command line.
        .target(name: "EarshotTree", dependencies: ["EarshotSafety", "CLinux"], swiftSettings: settings),
        // Values as JSON: in messages of types of their own, and in files that programs keep. Shared by both libraries.
        .target(
            name: "EarshotCoding", dependencies: ["EarshotSafety", .product(name: "Crypto", package: "swift-crypto")],
            swiftSettings: settings),
        .target(
            name: "EarshotWire",
            dependencies: [
                "EarshotSafety",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
            ],
            swiftSettings: settings),
        // What a peer decides, as values: no clock, no randomness, no task, no lock, no file and no socket. A test holds it to that.
        .target(
            name: "EarshotCore",
            dependencies: [
                "EarshotWire",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "OrderedCollections", package: "swift-collections"),
            ],
            swiftSettings: settings),
        .target(
            name: "Earshot",
            dependencies: [
                "EarshotCore", "EarshotCoding", "EarshotWire", "EarshotSafety", "EarshotTree", "EarshotWaiting", "CSQLite", "CLinux",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "X509", package: "swift-certificates"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "OrderedCollections", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings),
        .target(
            name: "EarshotDiscovery",
            dependencies: [
                "Earshot", "EarshotWaiting", "CAvahi", "CLinux",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: settings),
        // LocalSend's protocol: HTTPS with certificates that are pinned, and multicast announcements. The node never sees HTTP.
        .target(
            name: "EarshotLocalSend",
            dependencies: [
                "Earshot", "EarshotCore", "EarshotSafety", "EarshotWaiting", "EarshotWire", "CLinux",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "X509", package: "swift-certificates"),
            ],
            swiftSettings: settings),
        .target(
            name: "EarshotClient",
            dependencies: [
                "CCommit", "CLinux", "EarshotCoding", "EarshotSafety", "EarshotWire",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: settings),
        .target(
            name: "MultipeerConnectivity",
            dependencies: [
                "Earshot", "EarshotDiscovery",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "earshotd",
            dependencies: [
                "Earshot", "EarshotDiscovery", "EarshotLocalSend", "EarshotCoding", "EarshotClient", "EarshotSafety", "EarshotTree",
                "EarshotWaiting", "EarshotWire", "CLinux",
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            resources: [.embedInCode("OpenAPI/openapi.json")],
            swiftSettings: settings),
        // The program earshot. A module of that name would differ from the library's in letter case alone, which to a Mac is no difference.
        .executableTarget(
            name: "EarshotCLI",
            dependencies: [
                "EarshotClient", "EarshotSafety", "EarshotTree", "EarshotWaiting", "CLinux",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings),
        // Worlds of peers that run the core, under faults; and the program of Tests/simulate that plays them.
        .target(
            name: "Simulation",
            dependencies: [
                "EarshotCore", "EarshotSafety", "EarshotWire",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "OrderedCollections", package: "swift-collections"),
            ],
            path: "Tests/Simulation", exclude: ["Failures", "Mutants", "compile.py"], swiftSettings: settings),
        .executableTarget(
            name: "simulate", dependencies: ["Simulation"], path: "Tests/Simulator", swiftSettings: settings),
        // Makes the manual pages; a tool of the build, kept out of both programs.
        .executableTarget(name: "manual", exclude: ["Articles"], swiftSettings: settings),
        // The library's part of Tests/Benchmarks/run.
        .executableTarget(
            name: "benchmark",
            dependencies: [
                "Earshot", "EarshotWire",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tests/Benchmarks/Library", swiftSettings: settings),
        // Examples, which are built and tried with the tests and never installed.
        .executableTarget(
            name: "client-chat", dependencies: ["EarshotClient"], path: "Tests/Examples/client-chat", swiftSettings: settings),
        .executableTarget(
            name: "peer-chat", dependencies: ["Earshot", "EarshotDiscovery", .product(name: "Logging", package: "swift-log")],
            path: "Tests/Examples/peer-chat", swiftSettings: settings),
        .executableTarget(
            name: "multipeer-chat", dependencies: ["MultipeerConnectivity"], path: "Tests/Examples/multipeer-chat",
            swiftSettings: settings),
        .executableTarget(
            name: "multipeer-share", dependencies: ["MultipeerConnectivity"], path: "Tests/Examples/multipeer-share",
            swiftSettings: settings),
        .executableTarget(
            name: "peer-share",
            dependencies: [
                "Earshot", "EarshotDiscovery", .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
            ],
            path: "Tests/Examples/peer-share", swiftSettings: settings),
        // What the laboratory runs on its hosts to try streams and resources.
        .executableTarget(
            name: "multipeer-transfers", dependencies: ["MultipeerConnectivity"], path: "Tests/LANPrograms/multipeer-transfers",
            swiftSettings: settings),
        .testTarget(
            name: "EarshotWireTests",
            dependencies: [
                "EarshotSafety", "EarshotWire",
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
            ],
            resources: [.copy("Vectors")], swiftSettings: settings),
        .testTarget(name: "EarshotSafetyTests", dependencies: ["EarshotSafety", "CLinux"], swiftSettings: settings),
        .testTarget(name: "EarshotWaitingTests", dependencies: ["EarshotWaiting"], swiftSettings: settings),
        .testTarget(
            name: "EarshotTreeTests", dependencies: ["EarshotTree", "EarshotSafety"], resources: [.copy("Vectors")], swiftSettings: settings
        ),
        .testTarget(
            name: "EarshotCoreTests",
            dependencies: [
                "EarshotCore", "EarshotSafety", "EarshotWire", "Simulation",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "OrderedCollections", package: "swift-collections"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "EarshotTests",
            dependencies: [
                "Earshot", "EarshotCoding", "EarshotCore", "EarshotSafety", "EarshotTree", "EarshotWaiting", "EarshotWire", "CSQLite",
                "APIDocument", "ModelLaws",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "OrderedCollections", package: "swift-collections"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "X509", package: "swift-certificates"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "EarshotDiscoveryTests",
            dependencies: ["EarshotDiscovery", "Earshot", .product(name: "Logging", package: "swift-log")],
            swiftSettings: settings),
        .testTarget(
            name: "EarshotLocalSendTests",
            dependencies: [
                "EarshotLocalSend", "Earshot", "EarshotCore", "EarshotSafety", "EarshotWaiting", "EarshotWire",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "X509", package: "swift-certificates"),
            ],
            swiftSettings: settings),
        // The API's OpenAPI document, which tests hold answers and models to.
        .target(name: "APIDocument", path: "Tests/APIDocument", swiftSettings: settings),
        // What values of both libraries' models obey.
        .target(name: "ModelLaws", dependencies: ["APIDocument", "EarshotWire"], path: "Tests/ModelLaws", swiftSettings: settings),
        .testTarget(
            name: "EarshotClientTests", dependencies: ["EarshotClient", "EarshotCoding", "APIDocument", "ModelLaws"],
            swiftSettings: settings),
        .testTarget(
            name: "MultipeerConnectivityTests",
            dependencies: ["MultipeerConnectivity", "Earshot", .product(name: "NIOCore", package: "swift-nio")], swiftSettings: settings),
        .testTarget(name: "EarshotCodingTests", dependencies: ["EarshotCoding"], swiftSettings: settings),
        .testTarget(
            name: "EarshotCLITests",
            dependencies: [
                "EarshotCLI", "EarshotClient", "ModelLaws", .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "manualTests",
            dependencies: [
                "manual", "EarshotCLI", "earshotd", "EarshotClient", .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "earshotdTests",
            dependencies: [
                "earshotd", "client-chat", "Earshot", "EarshotCore", "EarshotClient", "EarshotDiscovery", "EarshotWire", "APIDocument",
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings),
        // Attacks on the real daemon; a run of its own, since it looks at memory and time.
        .testTarget(
            name: "HostileTests",
            dependencies: [
                "Earshot", "EarshotWire", "EarshotSafety", "CLinux", "earshotd", "EarshotCLI",
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"), .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "X509", package: "swift-certificates"), .product(name: "SwiftASN1", package: "swift-asn1"),
            ],
            exclude: ["report.py", "threats.txt"], swiftSettings: settings),
        .testTarget(
            name: "LANTests", dependencies: ["EarshotClient", "APIDocument", "multipeer-chat", "multipeer-transfers", "peer-chat"],
            path: "Tests/LAN",
            exclude: ["administration", "lab", "localsend_peer", "machine", "package", "service"], swiftSettings: settings),
    ]
)
