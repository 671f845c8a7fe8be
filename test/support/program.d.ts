import { type TestContext } from 'vitest'
export declare const dist: string
export declare function skipUnlessBuilt({ skip }: Pick<TestContext, 'skip'>): void
/** Runs it as a user would: with the built package, in a process of its own, which must end by itself. What it printed. */
export declare function runProgram(source: string, more?: Readonly<Record<string, string>>): Promise<string>
export declare function toJavaScript(source: string): string
