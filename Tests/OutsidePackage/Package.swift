// swift-tools-version: 6.2
import Foundation
import PackageDescription

// A package as a person has one who uses Earshot's libraries: nothing but its products can be seen from here. `Tests/outside` builds it, and runs it.

/// The directory with other projects' code for Apple's framework: `MultiPeer` and `ConnectedColors` as their repositories have them. This
/// repository contains none of it. Without the directory, these two programs are left out.
let others = ProcessInfo.processInfo.environment["EARSHOT_OTHERS"]

var targets: [Target] = [
    .executableTarget(
        name: "peer", dependencies: [.product(name: "Earshot", package: "earshot"), .product(name: "Logging", package: "swift-log")]),
    .executableTarget(name: "client", dependencies: [.product(name: "EarshotClient", package: "earshot")]),
    .executableTarget(name: "session", dependencies: [.product(name: "MultipeerConnectivity", package: "earshot")]),
]
if others != nil {
    targets += [
        // Each below a directory that `Tests/outside` links: a target's sources lie in its package.
        .target(
            name: "MultiPeer", dependencies: [.product(name: "MultipeerConnectivity", package: "earshot")],
            path: "Others/MultiPeer/Sources",
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .executableTarget(name: "multipeer", dependencies: ["MultiPeer"], swiftSettings: [.swiftLanguageMode(.v5)]),
        .executableTarget(
            name: "colors", dependencies: [.product(name: "MultipeerConnectivity", package: "earshot")], path: "Others/Colors",
            swiftSettings: [.swiftLanguageMode(.v5)]),
    ]
}

let package = Package(
    name: "outside",
    dependencies: [
        .package(name: "earshot", path: "../.."),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.2"),
    ],
    targets: targets)
