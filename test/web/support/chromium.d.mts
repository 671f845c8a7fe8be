export const ARGS: string[]
export function missingBrowser(): string
export function unpackBrowser(): Promise<string>
