import ArgumentParser

/// One peer, named in any of the ways of design section 1.
struct PeerArgument: ParsableArguments {
    @Argument(help: ArgumentHelp("The peer's id, at least 8 characters of it, or its name.", valueName: "peer"))
    var peer: String
}
