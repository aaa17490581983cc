import ArgumentParser

extension ArgumentHelp {
    /// The forms in which a group can be named: "Description" of earshot(1).
    static var group: ArgumentHelp { ArgumentHelp("The group's id (first 8 characters suffice) or its name.", valueName: "group") }
}
