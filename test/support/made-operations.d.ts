import type { Subjects } from '../../src/core/operations/table.ts'
/** The three parts of the table. */
export interface Table {
  readonly OF_RUNTIME: Subjects
  readonly OF_CONVERSATION: Subjects
  readonly OF_SERVER: Subjects
}
/** `methods.made.ts`: the names of methods by subject. Whoever imports the package reads these, and no operation. */
export declare function methodsFile({ OF_RUNTIME, OF_CONVERSATION }: Table): string
/** `requests.made.ts`: the request of each operation that HTTP has. A client reads these, and no operation. */
export declare function requestsFile({ OF_RUNTIME, OF_CONVERSATION, OF_SERVER }: Table): string
