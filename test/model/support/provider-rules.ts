import type { Body } from './wire.ts'

/**
 * Why a provider would answer 400 to this request, by the rules that it publishes for the schemas of tools and answers,
 * and the words of its refusals; undefined when it takes it.
 */
export function refusalOf(body: Body): string | undefined {
  if ('contents' in body) return geminiRefusal(body)
  if ('input' in body) return responsesRefusal(body)
  return toolsOf(body).some((tool) => 'input_schema' in tool) ? claudeRefusal(body) : chatRefusal(body)
}

type Node = Record<string, unknown>

/** "Invalid schema for function 'x': schema must have type 'object' and not have 'oneOf'/'anyOf'/... at the top level." */
function openAiTool(name: unknown, schema: unknown, isStrict: boolean): string | undefined {
  const invalid = (why: string) => `Invalid schema for function '${String(name)}': ${why}`
  if (!isNode(schema) || schema['type'] !== 'object') return invalid("schema must be a JSON Schema of 'type: object'")
  const wrong = ['oneOf', 'anyOf', 'allOf', 'enum', 'const', 'not'].find((key) => key in schema)
  if (wrong !== undefined) return invalid(`schema must not have '${wrong}' at the top level`)
  if (!isNode(schema['properties'])) return invalid('object schema missing properties')
  return firstIn(schema, (node) => {
    if ('oneOf' in node) return invalid("'oneOf' is not permitted")
    if (node['type'] === 'array' && !isNode(node['items'])) return invalid('array schema missing items')
    if (typeof node['$ref'] === 'string' && !resolves(schema, node['$ref'])) return invalid(`no ${node['$ref']}`)
    return isStrict ? notStrict(node) : undefined
  })
}

function notStrict(node: Node): string | undefined {
  if (node['type'] !== 'object') return undefined
  if (node['additionalProperties'] !== false) return "'additionalProperties' is required to be supplied and to be false"
  const required = node['required']
  const missing = Object.keys(node['properties'] ?? {}).find(
    (key) => !Array.isArray(required) || !required.includes(key),
  )
  return missing === undefined ? undefined : `'required' is required to include '${missing}'`
}

function responsesRefusal(body: Body): string | undefined {
  const format = nodeAt(body, 'text', 'format')
  return (
    first(toolsOf(body), ({ name, parameters, strict }) => openAiTool(name, parameters, strict !== false)) ??
    (format?.['type'] === 'json_schema'
      ? openAiTool('response_format', format['schema'], format['strict'] === true)
      : undefined)
  )
}

function chatRefusal(body: Body): string | undefined {
  const format = nodeAt(body, 'response_format', 'json_schema')
  return (
    first(toolsOf(body), (tool) => {
      const { name, parameters, strict } = (nodeAt(tool, 'function') ?? {}) as Node
      return openAiTool(name, parameters, strict === true)
    }) ??
    (format === undefined ? undefined : openAiTool('response_format', format['schema'], format['strict'] === true))
  )
}

/** "tools.0.custom.input_schema.type: Field required", "... does not support oneOf, allOf, or anyOf at the top level" */
function claudeRefusal(body: Body): string | undefined {
  return first(toolsOf(body), ({ name, input_schema: schema }) => {
    if (!isNode(schema) || schema['type'] !== 'object') return `tools.${String(name)}.input_schema.type: Field required`
    const wrong = ['oneOf', 'allOf', 'anyOf'].find((key) => key in schema)
    if (wrong !== undefined) return 'input_schema does not support oneOf, allOf, or anyOf at the top level'
    return firstIn(schema, ({ $ref }) =>
      typeof $ref === 'string' && !resolves(schema, $ref) ? `input_schema: no ${$ref}` : undefined,
    )
  })
}

/** The fields of Schema in the Gemini API; any other is "Unknown name ...: Cannot find field." */
const GEMINI_FIELDS: ReadonlySet<string> = new Set([
  ...['type', 'format', 'title', 'description', 'nullable', 'enum', 'maxItems', 'minItems', 'properties', 'required'],
  ...['minProperties', 'maxProperties', 'minLength', 'maxLength', 'pattern', 'example', 'anyOf', 'propertyOrdering'],
  ...['default', 'items', 'minimum', 'maximum'],
])

function geminiRefusal(body: Body): string | undefined {
  const declarations = toolsOf(body).flatMap(({ functionDeclarations }) => functionDeclarations as Node[])
  const answer = nodeAt(body, 'generationConfig', 'responseSchema')
  return (
    first(declarations, ({ name, parameters, parametersJsonSchema }) => {
      if (isNode(parametersJsonSchema))
        return parametersJsonSchema['type'] === 'object' ? undefined : 'must be an object'
      if (parameters === undefined) return undefined
      if (!isNode(parameters) || parameters['type'] !== 'object') return `${String(name)}: should be of type OBJECT`
      if (Object.keys(parameters['properties'] ?? {}).length === 0) return 'should be non-empty for OBJECT type'
      return geminiSchema(parameters)
    }) ?? (answer === undefined ? undefined : geminiSchema(answer))
  )
}

function geminiSchema(schema: Node): string | undefined {
  return firstIn(schema, (node) => {
    const unknown = Object.keys(node).find((key) => !GEMINI_FIELDS.has(key))
    if (unknown !== undefined) return `Unknown name "${unknown}": Cannot find field.`
    if (Array.isArray(node['type'])) return 'Proto field is not repeating, cannot start list.'
    if (node['type'] === undefined && node['anyOf'] === undefined) return "didn't specify the schema type field"
    if (node['type'] === 'array' && !isNode(node['items'])) return 'items: missing field.'
    const values = node['enum']
    return Array.isArray(values) && values.some((value) => typeof value !== 'string') ? 'enum: not a text' : undefined
  })
}

/** The first complaint about a schema or one inside it. */
function firstIn(schema: unknown, check: (node: Node) => string | undefined): string | undefined {
  if (!isNode(schema)) return undefined
  const lists = ['anyOf', 'oneOf', 'allOf', 'prefixItems'].flatMap((key) => schema[key] ?? [])
  const maps = ['properties', '$defs', 'definitions'].flatMap((key) => Object.values(schema[key] ?? {}))
  return check(schema) ?? first([schema['items'], ...lists, ...maps], (inner) => firstIn(inner, check))
}

function first<T>(items: readonly T[], check: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const complaint = check(item)
    if (complaint !== undefined) return complaint
  }
  return undefined
}

function resolves(root: Node, reference: string): boolean {
  const steps = reference.slice(1).split('/').slice(1)
  return reference.startsWith('#') && isNode(nodeAt(root, ...steps))
}

function nodeAt(root: unknown, ...steps: readonly string[]): Node | undefined {
  let here: unknown = root
  for (const step of steps) here = isNode(here) ? here[step] : undefined
  return isNode(here) ? here : undefined
}

function toolsOf(body: Body): Node[] {
  return Array.isArray(body['tools']) ? body['tools'] : []
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
