// The fields of a form, made from the schema of an agent's input; and the input that the typed entries stand for.
//
// Stays true: a schema that has no plain form becomes one field for JSON, so every agent can be started.

/** A JSON Schema, as an agent's facts show it. */
export type Schema = Readonly<Record<string, unknown>>

export type FieldKind = 'line' | 'text' | 'number' | 'flag' | 'choice' | 'choices' | 'json'

/** The name of the one field that is the whole input. */
const WHOLE = ''

export interface Field {
  /** The property; `WHOLE` for a field that is the whole input. */
  readonly name: string
  readonly label: string
  readonly hint: string | null
  readonly isOptional: boolean
  readonly kind: FieldKind
  /** The values to choose from, of `choice` and `choices`. */
  readonly choices: readonly string[]
  /** Whole numbers only. */
  readonly isWhole: boolean
}

/** What a person typed, ticked or chose. */
export type FieldValue = string | boolean | readonly string[]

export type FieldValues = Readonly<Record<string, FieldValue>>

/** The input, or what is wrong with each field by its name. */
export type ReadForm = { readonly input: unknown } | { readonly errors: Readonly<Record<string, string>> }

/** The fields of an agent; without a schema it takes a message. */
export function fieldsOf(schema: Schema | null): readonly Field[] {
  if (schema === null) return [wholeField('Message', 'text')]
  const properties = asSchema(schema['properties'])
  if (properties === null || Object.keys(properties).length === 0) return [wholeField('Input', 'json')]
  const required = asList(schema['required'])
  return Object.entries(properties).map(([name, property]) => fieldOf(name, asSchema(property) ?? {}, required))
}

function wholeField(label: string, kind: FieldKind): Field {
  const hint = kind === 'json' ? 'As JSON' : null
  return { name: WHOLE, label, hint, isOptional: false, kind, choices: [], isWhole: false }
}

function fieldOf(name: string, schema: Schema, required: readonly string[]): Field {
  const description = schema['description']
  const kind = kindOf(schema)
  return {
    name,
    label: labelOf(name),
    hint: typeof description === 'string' ? description : kind === 'json' ? 'As JSON' : null,
    isOptional: !required.includes(name),
    kind,
    choices: kind === 'choices' ? asList(asSchema(schema['items'])?.['enum']) : asList(schema['enum']),
    isWhole: schema['type'] === 'integer',
  }
}

const SHORT = 120

function kindOf(schema: Schema): FieldKind {
  const { type, format, maxLength } = schema as { readonly [key: string]: unknown }
  if (asList(schema['enum']).length > 0) return 'choice'
  if (type === 'boolean') return 'flag'
  if (type === 'number' || type === 'integer') return 'number'
  if (type === 'array' && asList(asSchema(schema['items'])?.['enum']).length > 0) return 'choices'
  if (type !== 'string') return 'json'
  return format !== undefined || (typeof maxLength === 'number' && maxLength <= SHORT) ? 'line' : 'text'
}

/** `maxComments` and `max_comments` are both `Max comments`. */
function labelOf(name: string): string {
  const words = name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/[_-]+/g, ' ')
    .trim()
    .toLowerCase()
  return words === '' ? name : words.charAt(0).toUpperCase() + words.slice(1)
}

/** The entries that a form begins with: the defaults of the schema. */
export function firstEntries(schema: Schema | null, fields: readonly Field[]): FieldValues {
  const properties = asSchema(schema?.['properties']) ?? {}
  return Object.fromEntries(fields.map((field) => [field.name, firstEntry(field, asSchema(properties[field.name]))]))
}

function firstEntry({ kind, choices, isOptional }: Field, schema: Schema | null): FieldValue {
  const usual = schema?.['default']
  if (kind === 'flag') return usual === true
  if (kind === 'choices') return asList(usual)
  if (usual !== undefined) return typeof usual === 'string' ? usual : JSON.stringify(usual)
  return kind === 'choice' && !isOptional ? (choices[0] ?? '') : ''
}

/** Reads the entries of all fields. Optional ones that are empty are left out. */
export function readForm(fields: readonly Field[], entries: FieldValues): ReadForm {
  const input: Record<string, unknown> = {}
  const errors: Record<string, string> = {}
  for (const field of fields) {
    const read = readEntry(field, entries[field.name] ?? '')
    if ('error' in read) errors[field.name] = read.error
    else if (read.value !== undefined) input[field.name] = read.value
  }
  if (Object.keys(errors).length > 0) return { errors }
  return { input: fields[0]?.name === WHOLE ? input[WHOLE] : input }
}

type ReadEntry = { readonly value: unknown } | { readonly error: string }

function readEntry(field: Field, entry: FieldValue): ReadEntry {
  if (typeof entry !== 'string') return { value: entry }
  if (entry.trim() === '') return field.isOptional ? { value: undefined } : { error: 'This is needed' }
  if (field.kind === 'number') return readNumber(field, entry)
  return field.kind === 'json' ? readJson(entry) : { value: entry }
}

function readNumber({ isWhole }: Field, entry: string): ReadEntry {
  const value = Number(entry)
  const isGood = isWhole ? Number.isSafeInteger(value) : Number.isFinite(value)
  return isGood ? { value } : { error: isWhole ? 'A whole number, such as 10' : 'A number, such as 2.5' }
}

function readJson(entry: string): ReadEntry {
  try {
    return { value: JSON.parse(entry) as unknown }
  } catch {
    return { error: 'This is not JSON' }
  }
}

function asSchema(value: unknown): Schema | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Schema) : null
}

function asList(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []
}
