const KEY = 'x-mcp-header'

/** Names that a header may have: letters of HTTP, no spaces, no colons. */
const NAME = /^[\w!#$%&'*+.^`|~-]+$/

const PLAIN: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean'])

/**
 * Why a tool may not be offered over HTTP, or undefined. A server may have parameters sent as headers as well. A tool whose headers
 * are not as the protocol says is left out, whole: of its parameters nobody could tell what a proxy reads.
 */
export function headerFault(schema: unknown): string | undefined {
  const names = new Set<string>()
  const faults = [...markedIn(schema)].map(([header, type]) => {
    if (typeof header !== 'string' || !NAME.test(header)) return 'a parameter asks for a header whose name is none'
    if (!PLAIN.has(type)) return `a parameter for the header "${header}" is no string, integer or boolean`
    if (names.has(header.toLowerCase())) return `two parameters ask for the header "${header}"`
    names.add(header.toLowerCase())
    return undefined
  })
  return faults.find((fault) => fault !== undefined)
}

/** The parameters that are marked, at any depth of `properties`. */
function* markedIn(schema: unknown, depth = 0): Generator<readonly [header: unknown, type: unknown]> {
  if (!isObject(schema) || depth > DEEPEST) return
  if (KEY in schema) yield [schema[KEY], schema['type']]
  const { properties } = schema
  if (isObject(properties)) for (const one of Object.values(properties)) yield* markedIn(one, depth + 1)
}

/** Deeper schemas are refused elsewhere. */
const DEEPEST = 64

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
