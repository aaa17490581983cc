import ArgumentParser

extension ArgumentHelp {
    /// The forms in which a peer can be named: "Description" of earshot(1).
    static var peer: ArgumentHelp { ArgumentHelp("The peer's id (first 8 characters suffice) or its name.", valueName: "peer") }
}
