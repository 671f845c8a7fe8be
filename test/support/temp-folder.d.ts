/** A new folder, empty, that is gone after the test. */
export declare function tempFolder(atEnd?: (clear: () => void) => void, parent?: string): string
