/// Where the bytes of a file's data lie within the file.
struct ExtentMap: Sendable {
    private let size: UInt64
    private let extents: [TreeEntry.Extent]
    /// By extent, how many bytes of data are before it.
    private let starts: [UInt64]

    init(_ content: TreeEntry.Content) {
        switch content {
        case .directory, .link: (self.size, self.extents) = (0, [])
        case .file(let size): (self.size, self.extents) = (size, size > 0 ? [TreeEntry.Extent(offset: 0, length: size)] : [])
        case .sparse(let size, let extents): (self.size, self.extents) = (size, extents)
        }
        var starts: [UInt64] = []
        var sum: UInt64 = 0
        for extent in self.extents {
            starts.append(sum)
            sum += extent.length
        }
        self.starts = starts
    }

    /// The byte of the file that holds byte `position` of the data, and how many bytes follow on from it; 0 behind the data.
    func place(_ position: UInt64) -> (offset: UInt64, run: UInt64) {
        guard let index = self.index(position) else { return (self.size, 0) }
        let within = position - self.starts[index]
        return (self.extents[index].offset + within, self.extents[index].length - within)
    }

    /// How many bytes of data are in the first `length` bytes of the file.
    func dataBefore(_ length: UInt64) -> UInt64 {
        var sum: UInt64 = 0
        for extent in self.extents {
            guard extent.offset < length else { break }
            sum += min(extent.length, length - extent.offset)
        }
        return sum
    }

    private func index(_ position: UInt64) -> Int? {
        var (low, high) = (0, self.extents.count)
        while low < high {
            let middle = (low + high) / 2
            if self.starts[middle] <= position { low = middle + 1 } else { high = middle }
        }
        guard low > 0, position - self.starts[low - 1] < self.extents[low - 1].length else { return nil }
        return low - 1
    }
}
