/// The control API's values, as they stand in JSON on the Unix socket (design section 7).
///
/// The daemon makes them and our clients read them; neither sees the other's insides. Field names are `snake_case`, times ISO 8601 in UTC,
/// bytes base64. A client of another version meets fields and enum values that it does not know: the former are ignored, the latter are kept
/// as ``Tolerant/unknown(_:)``. A field written `?` in the design is absent without a value; any other one is then `null`; both are read alike.
package enum ControlAPI {
    /// Before every path, such as `/v1/peers`.
    package static let pathPrefix = "/v1"
    /// What a directory's content is called where it is neither JSON nor a tar archive: a tree in the protocol's own format.
    package static let treeMediaType = "application/vnd.earshot.tree"
}
