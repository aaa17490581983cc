/// The mapping from a file's data in the stream to positions in the file.
struct ExtentMap: Sendable {
    /// The number of extents per mark. Between marks the extents are counted, so two million of them need little memory.
    private static let stride = 64

    private enum Runs {
        /// One run from the start of the file.
        case whole
        case sparse(TreeEntry.Extents)
    }

    private let size: UInt64
    private let runs: Runs
    /// The number of data bytes before every `stride`-th extent.
    private let marks: [UInt64]

    init(_ content: TreeEntry.Content) {
        switch content {
        case .directory, .link: (self.size, self.runs, self.marks) = (0, .whole, [])
        case .file(let size): (self.size, self.runs, self.marks) = (size, .whole, [])
        case .sparse(let size, let extents):
            var marks: [UInt64] = []
            marks.reserveCapacity(extents.count / Self.stride + 1)
            var sum: UInt64 = 0
            for (index, extent) in extents.enumerated() {
                if index % Self.stride == 0 { marks.append(sum) }
                sum += extent.length
            }
            (self.size, self.runs, self.marks) = (size, .sparse(extents), marks)
        }
    }

    /// Returns the position in the file of byte `position` of the data, and the length of the run from there; 0 after the data.
    func place(_ position: UInt64) -> (offset: UInt64, run: UInt64) {
        let nowhere = (offset: self.size, run: UInt64(0))
        switch self.runs {
        case .whole: return position < self.size ? (position, self.size - position) : nowhere
        case .sparse(let extents):
            var (low, high) = (0, self.marks.count)
            while low < high {
                let middle = (low + high) / 2
                if self.marks[middle] <= position { low = middle + 1 } else { high = middle }
            }
            guard low > 0 else { return nowhere }
            var before = self.marks[low - 1]
            let first = (low - 1) * Self.stride
            for index in first..<min(first + Self.stride, extents.count) {
                let extent = extents[index]
                let within = position - before
                if within < extent.length { return (extent.offset + within, extent.length - within) }
                before += extent.length
            }
            return nowhere
        }
    }

    /// Returns the number of data bytes in the first `length` bytes of the file.
    func dataBefore(_ length: UInt64) -> UInt64 {
        switch self.runs {
        case .whole: return min(length, self.size)
        case .sparse(let extents):
            var sum: UInt64 = 0
            for extent in extents {
                guard extent.offset < length else { break }
                sum += min(extent.length, length - extent.offset)
            }
            return sum
        }
    }

    /// Returns the blocks that the first `count` bytes of the data touch.
    func blocks(ofFirst count: UInt64, in blocks: DiskBlocks) -> BlockRuns {
        var runs = BlockRuns(of: blocks)
        switch self.runs {
        case .whole: runs.add(at: 0, count: min(count, self.size))
        case .sparse(let extents):
            var left = count
            for extent in extents {
                guard left > 0 else { break }
                let length = min(left, extent.length)
                runs.add(at: extent.offset, count: length)
                left -= length
            }
        }
        return runs
    }
}
