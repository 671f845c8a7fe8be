import type { JsonSchema } from '../../base/schema/schema.ts'
import { type ObjectSchema, objectSchema, refersToRoot, rootedInDefinitions } from '../object-schema.ts'
import { type AiSdkModel, providerName } from './ai-sdk-model.ts'

/**
 * Rewrites a schema into a form that this model's provider takes. The result never demands more than the schema,
 * sometimes less: our own check of the model's values uses the schema itself.
 */
export function providerSchema(model: AiSdkModel, schema: JsonSchema, field: string): ObjectSchema {
  const isGemini = providerName(model) === 'google'
  const known = isGemini ? forGemini : forOthers
  let shown = known.get(schema)
  if (shown === undefined) {
    const plain = changed(schema, asCommon) as JsonSchema
    shown = isGemini ? geminiSchema(plain, field) : objectSchema(plain, field)
    known.set(schema, shown)
  }
  return shown
}

/** Caches the rewritten schemas: a tool's schema is the same object call after call. */
const forGemini: WeakMap<JsonSchema, ObjectSchema> = new WeakMap()
const forOthers: WeakMap<JsonSchema, ObjectSchema> = new WeakMap()

type Node = Record<string, unknown>

/** Some providers refuse `oneOf` at any depth, and lists without `items`. All know `anyOf` and `items`. */
function asCommon({ oneOf, ...others }: Node): Node {
  const node = oneOf === undefined || others['anyOf'] !== undefined ? { ...others, oneOf } : { ...others, anyOf: oneOf }
  const { type, items, prefixItems } = node as Node
  if (type !== 'array' || isSchema(items)) return node
  return { ...node, items: isList(prefixItems) && prefixItems.length > 0 ? { anyOf: prefixItems } : {} }
}

/**
 * Gemini knows a part of OpenAPI: every schema has one type, or `anyOf`; a list has `items`; no reference points to the
 * root.
 */
function geminiSchema(given: JsonSchema, field: string): ObjectSchema {
  const schema = writtenOut(given) > MOST_STEPS ? {} : given
  const rooted = refersToRoot(schema) ? rootedInDefinitions(schema, 'root') : schema
  const shown = objectSchema(rooted, field)
  const isOpen =
    shown.field === null && isEmpty(shown.schema['properties']) && isSchema(shown.schema['additionalProperties'])
  const closed = isOpen ? { schema: { type: 'object', properties: { [field]: shown.schema } }, field } : shown
  return { ...closed, schema: changed(closed.schema, asGemini) as JsonSchema }
}

/**
 * The most schemas that the client of Gemini may make out of one: it writes references out, and those may double with
 * each step.
 */
const MOST_STEPS = 5_000

/** Counts the schemas after writing out all references. A reference that leads back to itself ends there. */
function writtenOut(root: JsonSchema): number {
  const known = new Map<unknown, number>()
  const definitions: Node = { ...(root['definitions'] as Node), ...(root['$defs'] as Node) }
  const count = (value: unknown): number => {
    if (typeof value !== 'object' || value === null) return 0
    const seen = known.get(value)
    if (seen !== undefined) return seen
    known.set(value, 1)
    let steps = 1
    for (const [key, inner] of Object.entries(value)) {
      if (key === '$defs' || key === 'definitions') continue
      steps += key === '$ref' ? count(definitions[String(inner).split('/').at(-1) ?? '']) : count(inner)
    }
    known.set(value, steps)
    return steps
  }
  return count(root)
}

function asGemini({ allOf, prefixItems: _, ...others }: Node): Node {
  const node: Node = isList(allOf) ? Object.assign({}, ...allOf, others) : others
  const { type, enum: values } = node
  if (isList(type) && type.filter((one) => one !== 'null').length > 1) return ofEachType(node, type)
  if (isList(values) && new Set(values.map((value) => typeof value)).size > 1) return mixedEnum(node, values)
  if (type === 'array' && !isSchema(node['items'])) return { ...node, items: SIMPLE }
  if (isSaid(node)) return node
  return { ...node, ...(node['properties'] === undefined ? ANYTHING : { type: 'object' }) }
}

function ofEachType(node: Node, types: readonly unknown[]): Node {
  const { description: _, ...others } = node
  return { ...described(node), anyOf: types.map((type) => withoutUndefined(asGemini({ ...others, type }))) }
}

function mixedEnum(whole: Node, values: readonly unknown[]): Node {
  const kinds = [...new Set(values.map((value) => typeof value))]
  return {
    ...described(whole),
    anyOf: kinds.map((kind) => ({ enum: values.filter((value) => typeof value === kind) })),
  }
}

function described({ description }: Node): Node {
  return description === undefined ? {} : { description }
}

function isSaid(node: Node): boolean {
  return ['type', 'anyOf', '$ref', 'enum', 'const'].some((key) => node[key] !== undefined)
}

const SIMPLE = { anyOf: [{ type: 'string' }, { type: 'number' }, { type: 'boolean' }, { type: 'object' }] }
const ANYTHING = { anyOf: [...SIMPLE.anyOf, { type: 'array', items: SIMPLE }] }

const MAPS: readonly string[] = ['properties', '$defs', 'definitions', 'patternProperties']
const SCHEMAS: readonly string[] = ['items', 'prefixItems', 'anyOf', 'oneOf', 'allOf', 'additionalProperties', 'not']

/** Changes each schema inside this one, the innermost first. */
function changed(schema: unknown, change: (node: Node) => Node): unknown {
  if (Array.isArray(schema)) return schema.map((one) => changed(one, change))
  if (!isSchema(schema)) return schema === true ? change({}) : schema
  const node: Node = {}
  for (const [key, value] of Object.entries(schema)) {
    if (MAPS.includes(key) && isSchema(value)) node[key] = mapped(value, (one) => changed(one, change))
    else node[key] = SCHEMAS.includes(key) && typeof value === 'object' ? changed(value, change) : value
  }
  return withoutUndefined(change(node))
}

function mapped(map: Node, change: (value: unknown) => unknown): Node {
  return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, change(value)]))
}

function withoutUndefined(node: Node): Node {
  return Object.fromEntries(Object.entries(node).filter(([, value]) => value !== undefined))
}

function isEmpty(value: unknown): boolean {
  return !isSchema(value) || Object.keys(value).length === 0
}

function isSchema(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}
