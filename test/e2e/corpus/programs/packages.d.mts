export declare const PACKAGES: Readonly<Record<string, readonly string[]>>
export declare function packageOf(args: readonly string[]): string
