import ArgumentParser

extension ArgumentHelp {
    /// The forms in which a peer can be named: "Description" of earshot(1).
    static var peer: ArgumentHelp { ArgumentHelp("The peer's id (at least 8 characters) or its name.", valueName: "peer") }
}
