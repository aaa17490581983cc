/// The check of a symbolic link's target: it must not lead out of the tree, wherever the tree is placed.
///
/// A target is relative. Its `..` components come first, and are at most as many as the depth of the link's directory. After a name, `..`
/// is refused: the name might be a link itself, and `up/..` would then be another directory than the text says. Each link thus leads
/// upwards through real directories only and from there downwards, where every further link does the same.
enum LinkTarget {
    /// Returns why the target is not acceptable for a link in a directory `depth` levels below the root; `nil` if it is.
    static func fault(_ target: some Collection<UInt8>, depth: Int) -> String? {
        guard !target.isEmpty else { return "is a link to nowhere" }
        guard target.count <= TreeLimits.linkBytes else { return "is a link with a target longer than \(TreeLimits.linkBytes) bytes" }
        guard !target.contains(0) else { return "is a link with a NUL in its target" }
        guard target.first != UInt8(ascii: "/") else { return "is a link with an absolute target, which leads out of the directory" }
        var climbs = 0
        var hasName = false
        for component in target.split(separator: UInt8(ascii: "/")) where !component.elementsEqual(".".utf8) {
            guard component.elementsEqual("..".utf8) else {
                hasName = true
                continue
            }
            guard !hasName else { return "is a link whose target goes up after going down, and might lead out of the directory" }
            climbs += 1
            guard climbs <= depth else { return "is a link that leads out of the directory" }
        }
        return nil
    }
}
