/// Which targets a symbolic link of a tree may have: those that cannot lead out of it, wherever the tree is put.
///
/// A target is relative, and its `..` stand at its beginning, at most as many as the link's directory is deep. Behind a name there is
/// none: the name might be a link itself, and `up/..` is then another directory than the text says. So each link leads to a directory of
/// the tree by real directories and from there only downwards, where every further link does the same.
enum LinkTarget {
    /// Why the target is not acceptable for a link in a directory `depth` levels below the root; `nil` when it is.
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
