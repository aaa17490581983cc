import ArgumentParser

extension ArgumentHelp {
    /// What a peer may be named by: "Description" of earshot(1).
    static var peer: ArgumentHelp { ArgumentHelp("The peer's id (at least 8 characters) or its name.", valueName: "peer") }
}
