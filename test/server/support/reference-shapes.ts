import { ANSWER_SCHEMAS } from './answer-schemas.ts'

type Schema = Readonly<Record<string, unknown>>

/** Unions of events have a page of their own. */
const EVENTS = new Set(['DurableEvent', 'LiveEvent', 'EventBody'])

/** The part of the reference page about the forms of answers, by their names. */
export function shapeSections(): string[] {
  return [
    '## Forms of answers',
    '',
    'The forms that the routes above name, and those that they are made of. Times are milliseconds since 1970.',
    '',
    ...Object.entries(ANSWER_SCHEMAS).flatMap(([name, schema]) => section(name, schema)),
  ]
}

/** A link to the form. */
export function shapeLink(name: string): string {
  return `[${name}](#${name.toLowerCase()})`
}

function section(name: string, schema: Schema): string[] {
  const words = typeof schema['description'] === 'string' ? [schema['description'], ''] : []
  return [`### ${name}`, '', ...words, ...body(name, schema)]
}

function body(name: string, schema: Schema): string[] {
  if (EVENTS.has(name)) return ['One of the [events](events.md), by its `type`.', '']
  const variants = schema['anyOf'] as readonly Schema[] | undefined
  if (variants === undefined) return schema['properties'] === undefined ? [`${typeOf(schema)}.`, ''] : fields(schema)
  if (variants.some((variant) => variant['properties'] === undefined)) {
    return [`One of ${variants.map(typeOf).join(', ')}.`, '']
  }
  return variants.flatMap((variant, at) => [at === 0 ? 'Either:' : 'Or:', '', ...fields(variant)])
}

function fields({ properties = {}, required = [] }: Schema): string[] {
  const rows = Object.entries(properties as Readonly<Record<string, Schema>>).map(([name, schema]) => {
    const isOptional = !(required as readonly string[]).includes(name)
    const { description = '' } = schema
    return `| \`${name}\`${isOptional ? ' (optional)' : ''} | ${cell(typeOf(schema))} | ${cell(String(description))} |`
  })
  return ['| field | type | meaning |', '|---|---|---|', ...rows, '']
}

function cell(text: string): string {
  return text.replaceAll(/(?<!\\)\|/g, '\\|')
}

/** The type in words. */
function typeOf(schema: Schema): string {
  const { $ref, type, enum: words, items, anyOf, additionalProperties, properties } = schema
  if (typeof $ref === 'string') return shapeLink($ref.slice($ref.lastIndexOf('/') + 1))
  if (Array.isArray(words)) return words.map((word) => `\`${String(word)}\``).join(', ')
  if ('const' in schema) return `\`${String(schema['const'])}\``
  if (Array.isArray(anyOf)) return anyOf.map((one) => typeOf(one as Schema)).join(' or ')
  if (type === 'array') return `list of ${items === undefined ? 'values' : typeOf(items as Schema)}`
  if (properties !== undefined) return inline(properties as Readonly<Record<string, Schema>>)
  if (additionalProperties !== undefined) return `${typeOf(additionalProperties as Schema)} by name`
  if (type === undefined) return 'any JSON'
  return (Array.isArray(type) ? type : [type]).join(' or ')
}

function inline(properties: Readonly<Record<string, Schema>>): string {
  const parts = Object.entries(properties).map(([name, schema]) => `\`${name}\`: ${typeOf(schema)}`)
  return `{ ${parts.join('; ')} }`
}
