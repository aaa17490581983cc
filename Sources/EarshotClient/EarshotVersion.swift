internal import CCommit
package import FoundationEssentials

/// The version of the daemon and the command line, which are built and installed together. Tests hold the manual pages, the API's
/// document, the packages' changelog and what the manual shows to it.
package enum EarshotVersion {
    /// Semantic version (semver.org).
    package static let current = "0.2.0"
    /// The commit it was built from: 12 digits, and a + where the checkout held changes; `unknown` outside git.
    package static let commit = String(cString: earshot_commit())
    /// What `--version` says after the program's name.
    package static let described = "\(Self.current) (\(Self.commit))"
    /// A day long before which nothing of it was there, the 1st of January 2025: a clock that says less is wrong.
    package static let date = Date(timeIntervalSince1970: 1_735_689_600)
}
