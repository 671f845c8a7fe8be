// The abilities of a client, read from its capabilities, and refusals in the codes of MCP.

/** The name of the extension by which calls become tasks. */
export const TASKS = 'io.modelcontextprotocol/tasks'

type Capabilities = Readonly<Record<string, unknown>>

/** Does the client take a task in place of a result? */
export function hasTasks({ extensions }: Capabilities): boolean {
  return TASKS in (Object(extensions) as object)
}

/** Does the client put forms to a person? A client that names no mode has forms. */
export function hasForms({ elicitation }: Capabilities): boolean {
  if (typeof elicitation !== 'object' || elicitation === null) return false
  return 'form' in elicitation || Object.keys(elicitation).length === 0
}

export const INVALID_PARAMS = -32_602
const MISSING_CAPABILITY = -32_021

/** An error of the protocol: the request itself cannot be served. */
export class McpRefusal extends Error {
  readonly code: number
  readonly data: { readonly [key: string]: unknown } | undefined

  constructor(code: number, message: string, data?: { readonly [key: string]: unknown }) {
    super(message)
    this.code = code
    this.data = data
  }
}

/** Refuses a client that takes no tasks. */
export function needTasks(client: Capabilities): void {
  if (hasTasks(client)) return
  const requiredCapabilities = { extensions: { [TASKS]: {} } }
  throw new McpRefusal(MISSING_CAPABILITY, `This needs the extension ${TASKS}.`, { requiredCapabilities })
}
