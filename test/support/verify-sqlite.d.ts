/** Reads the file without the store: nothing is damaged and every tree's chain is right. The last hash of every tree. */
export declare function verifyFile(path: string): Map<string, string>
