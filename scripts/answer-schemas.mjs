// Makes JSON Schemas of types: of the answers of the API, and of every type of ours that they name.

import ts from 'typescript'

/** Types that are any JSON value. */
const ANY = /^(?:Json|JsonSchema)$/

/**
 * The schemas of the properties of a type, each under its own name, and of all named types below them.
 * `checker` and `isOurs` say what a type is and whether it was declared here.
 */
export function answerSchemas(answers, { checker, isOurs }) {
  const schemas = new Map()
  const names = new Map()
  for (const property of checker.getPropertiesOfType(answers)) {
    const type = checker.getTypeOfSymbol(property)
    if (nameOf(type) !== undefined && !names.has(type)) names.set(type, property.name)
  }
  for (const property of checker.getPropertiesOfType(answers)) {
    const type = checker.getTypeOfSymbol(property)
    if (names.get(type) === property.name) schemaOf(type)
    else add(property.name, type, () => objectOrUnion(type))
  }
  return Object.fromEntries(
    [...schemas].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, { schema }]) => [name, schema]),
  )

  /** The name of a type that gets a schema of its own: an interface or alias of ours without parameters. */
  function nameOf(type) {
    const symbol = type.aliasSymbol ?? type.getSymbol()
    const isNamed = symbol !== undefined && !symbol.name.startsWith('__') && isOurs(symbol)
    const hasParameters = (type.aliasTypeArguments ?? type.typeArguments ?? []).length > 0
    const isPlain = (type.flags & (ts.TypeFlags.Object | ts.TypeFlags.Union | ts.TypeFlags.Intersection)) !== 0
    return isNamed && isPlain && !hasParameters && !isLiterals(type) ? symbol.name : undefined
  }

  function add(name, type, make) {
    const known = schemas.get(name)
    if (known?.type === type) return
    if (known !== undefined) throw new Error(`Two types of answers are called ${name}: rename one of them.`)
    const entry = { type, schema: {} }
    schemas.set(name, entry)
    const symbol = type.aliasSymbol ?? type.getSymbol()
    const words = symbol === undefined || !isOurs(symbol) ? '' : docOf(symbol)
    entry.schema = { ...(words === '' ? {} : { description: words }), ...make() }
  }

  function schemaOf(type) {
    const symbol = type.aliasSymbol ?? type.getSymbol()
    if (symbol !== undefined && ANY.test(symbol.name)) return {}
    const name = names.get(type) ?? nameOf(type)
    if (name === undefined) return objectOrUnion(type)
    names.set(type, name)
    add(name, type, () => objectOrUnion(type))
    return { $ref: `#/components/schemas/${name}` }
  }

  function objectOrUnion(type) {
    if (type.isUnion()) return unionSchema(type)
    return simpleSchema(type) ?? listSchema(type) ?? objectSchema(type)
  }

  function unionSchema(type) {
    // A union of named unions keeps their names.
    const { types } = type.origin?.isUnion() ? type.origin : type
    // JSON has neither. A symbol would be written with a number of the compiler, which changes with any other type.
    const none = ts.TypeFlags.Undefined | ts.TypeFlags.ESSymbolLike
    const members = types.filter(({ flags }) => (flags & none) === 0)
    const literals = members.filter((one) => one.isLiteral()).map(({ value }) => value)
    const others = members.filter((one) => !one.isLiteral())
    const isFlag = others.filter(({ flags }) => (flags & ts.TypeFlags.BooleanLiteral) !== 0).length === 2
    const rest = isFlag ? others.filter(({ flags }) => (flags & ts.TypeFlags.BooleanLiteral) === 0) : others
    const parts = [
      ...(literals.length === 0 ? [] : [literalSchema(literals)]),
      ...(isFlag ? [{ type: 'boolean' }] : []),
      ...sorted(rest.map(schemaOf)),
    ]
    return joined(parts)
  }

  function objectSchema(type) {
    const index = checker.getIndexTypeOfType(type, ts.IndexKind.String)
    const properties = checker.getPropertiesOfType(type).filter((symbol) => isData(checker.getTypeOfSymbol(symbol)))
    const required = properties.filter((symbol) => !mayLack(symbol)).map(({ name }) => name)
    const entries = properties.map((symbol) => [symbol.name, propertySchema(symbol)])
    return {
      type: 'object',
      ...(entries.length === 0 ? {} : { properties: Object.fromEntries(entries) }),
      ...(required.length === 0 ? {} : { required }),
      ...(index === undefined ? {} : { additionalProperties: schemaOf(index) }),
    }
  }

  function propertySchema(symbol) {
    const words = docOf(symbol)
    const schema = schemaOf(checker.getTypeOfSymbol(symbol))
    return words === '' ? schema : { description: words, ...schema }
  }

  /** JSON leaves out what is undefined, and unknown values may be. */
  function mayLack(symbol) {
    const type = checker.getTypeOfSymbol(symbol)
    const members = type.isUnion() ? type.types : [type]
    const isOpen = members.some(({ flags }) => (flags & (ts.TypeFlags.Undefined | ts.TypeFlags.AnyOrUnknown)) !== 0)
    return isOpen || (symbol.flags & ts.SymbolFlags.Optional) !== 0
  }

  function listSchema(type) {
    if (checker.isTupleType(type)) {
      const items = checker.getTypeArguments(type).map(schemaOf)
      return { type: 'array', prefixItems: items, minItems: items.length, maxItems: items.length }
    }
    if (!checker.isArrayLikeType(type)) return undefined
    return { type: 'array', items: schemaOf(checker.getIndexTypeOfType(type, ts.IndexKind.Number)) }
  }

  function docOf(symbol) {
    return ts.displayPartsToString(symbol.getDocumentationComment(checker)).replaceAll(/\s+/g, ' ').trim()
  }
}

function simpleSchema({ flags, value, intrinsicName }) {
  if ((flags & ts.TypeFlags.AnyOrUnknown) !== 0) return {}
  if (value !== undefined) return literalSchema([value])
  if ((flags & ts.TypeFlags.StringLike) !== 0) return { type: 'string' }
  if ((flags & ts.TypeFlags.NumberLike) !== 0) return { type: 'number' }
  if ((flags & ts.TypeFlags.BooleanLiteral) !== 0) return { const: intrinsicName === 'true' }
  if ((flags & ts.TypeFlags.BooleanLike) !== 0) return { type: 'boolean' }
  return (flags & ts.TypeFlags.Null) !== 0 ? { type: 'null' } : undefined
}

function literalSchema(values) {
  const types = [...new Set(values.map((value) => typeof value))]
  return { type: types.length === 1 ? types[0] : types, enum: [...values].sort() }
}

/** The compiler has no order of its own for the members of a union; null comes last. */
function sorted(parts) {
  const key = (part) => (part.type === 'null' ? '~' : JSON.stringify(part))
  return parts.toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
}

/** One schema of several. Simple ones become a list of types. */
function joined(parts) {
  const [only] = parts
  if (parts.length === 1) return only
  const isSimple = (part) => Object.keys(part).length === 1 && typeof part.type === 'string'
  if (parts.every(isSimple)) return { type: parts.map(({ type }) => type) }
  return { anyOf: parts }
}

function isLiterals(type) {
  return type.isUnion() && type.types.every((one) => one.isLiteral() || (one.flags & ts.TypeFlags.BooleanLiteral) !== 0)
}

/** Functions are not sent. */
function isData(type) {
  return type.getCallSignatures().length === 0 && (type.flags & ts.TypeFlags.ESSymbolLike) === 0
}
