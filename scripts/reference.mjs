// Writes docs/reference/events.md, docs/reference/options.md and the schemas of the server's answers from the types and their
// doc comments.
//   node scripts/reference.mjs          writes them
//   node scripts/reference.mjs --check  fails if one is not what it would write, or if an option or event has no words

import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import ts from 'typescript'
import { answerSchemas } from './answer-schemas.mjs'

const root = path.resolve(import.meta.dirname, '..')
const SCHEMAS = 'src/server/http/table/answers.json'

/** Types with parts that can be left out, and that are no options: you get them from others, or implement them as a port. */
const NO_OPTIONS =
  /^(?:Agent|AnyAgent|EventHooks|ForeignTool|Layer|Model|Request|Scanner|Store|Tool|TreeRows|(?:Builtin|Frontend|Http|Named|Python|Stdio)Extension)$/

/** Exported types that are options by their name, also where no function takes them directly. */
const OPTIONS = /(?:Options|Config|Definition|Settings|Query)$/

/** Ports: their methods are called by legate, not by you. */
const PORTS = /^(?:Store|Scanner|.*Clock|Model|SessionStore|.*Reader)$/

const config = ts.readConfigFile(path.join(root, 'tsconfig.json'), ts.sys.readFile)
const { options: compilerOptions } = ts.parseJsonConfigFileContent(config.config, ts.sys, root)
const doors = readDoors()
const program = ts.createProgram([...doors.values()], compilerOptions)
const checker = program.getTypeChecker()

/** Where a doc comment is missing. */
const silent = new Set()

main()

function main() {
  const { values } = parseArgs({ options: { check: { type: 'boolean' } } })
  const pages = {
    'docs/reference/events.md': eventsPage(),
    'docs/reference/options.md': optionsPage(),
    [SCHEMAS]: schemasFile(),
  }
  const stale = Object.entries(pages).filter(([name, text]) => readPage(name) !== text)
  if (!values.check) for (const [name, text] of stale) writeFileSync(path.join(root, name), text)
  if (silent.size > 0) console.error(`Give these a doc comment:\n${[...silent].join('\n')}`)
  if (values.check && stale.length > 0) {
    console.error(
      `Run node scripts/reference.mjs: ${stale.map(([name]) => name).join(' and ')} is not what the types say.`,
    )
  }
  process.exitCode = silent.size > 0 || (values.check && stale.length > 0) ? 1 : 0
}

function readPage(name) {
  try {
    return readFileSync(path.join(root, name), 'utf8')
  } catch {
    return ''
  }
}

/** The source file of each door of the package, by the name that users import. */
function readDoors() {
  const { exports } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'))
  const names = Object.keys(exports).filter((door) => !door.endsWith('.json'))
  return new Map(
    names.map((door) => {
      const name = `legate${door.slice(1)}`
      const [source] = compilerOptions.paths?.[name] ?? []
      if (source === undefined) throw new Error(`tsconfig.json has no path for ${name}.`)
      return [name, path.resolve(root, source)]
    }),
  )
}

function exportsOf(file) {
  const source = program.getSourceFile(file)
  const found = checker.getExportsOfModule(checker.getSymbolAtLocation(source))
  return found.map((symbol) => {
    const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0
    return { name: symbol.name, symbol: isAlias ? checker.getAliasedSymbol(symbol) : symbol }
  })
}

// Events

function eventsPage() {
  const exported = new Map(exportsOf(doors.get('legate/rows')).map(({ name, symbol }) => [name, symbol]))
  const durable = eventsOf(exported.get('DurableEvent'))
  const live = eventsOf(exported.get('LiveEvent'))
  const first = [...durable.values()][0]
  const common = propertiesOf(first).filter(({ name }) => isOnAll([...durable.values()], name) && name !== 'type')
  return [
    '# Events',
    '',
    '<!-- Made by `node scripts/reference.mjs` from src/core/graph/event.ts. Change the doc comments there. -->',
    '',
    'You get events from `for await (const event of run)`, from `run.events()` and from `conversation.events()`. Check `event.type`',
    'first: TypeScript then knows the fields. See [conversation](../guide/conversation.md) for how to read them.',
    '',
    '## Fields of every event',
    '',
    fieldTable(common, 'every event'),
    '',
    '## Stored events',
    '',
    'A stored event is written together with the change that it reports. Its `seq` is a whole number. You can read it later and from',
    'another process.',
    '',
    ...[...durable].flatMap(([type, event]) => eventSection(type, event, common)),
    '## Live events',
    '',
    'You see a live event while its node runs. Its `seq` is the last whole number plus a fraction. When the node has ended, the stored',
    'event stands for it.',
    '',
    ...[...live].flatMap(([type, event]) => eventSection(type, event, common)),
  ]
    .join('\n')
    .trimEnd()
    .concat('\n')
}

/** The members of a union of events, by their `type`. */
function eventsOf(symbol) {
  const union = checker.getDeclaredTypeOfSymbol(symbol)
  const members = union.isUnion() ? union.types : [union]
  return new Map(members.map((member) => [typeOfEvent(member), member]))
}

function typeOfEvent(member) {
  return checker.getTypeOfSymbol(member.getProperty('type')).value
}

function isOnAll(members, name) {
  return members.every((member) => member.getProperty(name) !== undefined)
}

function eventSection(type, event, common) {
  const words = docOf(event.getProperty('type'))
  if (words === '') noteSilent(event.getProperty('type'), `event ${type}`)
  const fields = propertiesOf(event).filter(({ name }) => name !== 'type' && !common.some((one) => one.name === name))
  const table = fields.length === 0 ? 'It has no fields of its own.' : fieldTable(fields, type)
  return [`### \`${type}\``, '', words, '', table, '']
}

function fieldTable(fields, owner) {
  const rows = fields.map(({ symbol, name }) => {
    const words = docOf(symbol)
    if (words === '') noteSilent(symbol, `${owner}.${name}`)
    return `| \`${name}\`${isOptional(symbol) ? ' (optional)' : ''} | ${code(typeText(symbol))} | ${cell(words)} |`
  })
  return ['| field | type | meaning |', '|---|---|---|', ...rows].join('\n')
}

// Answers

/** The schemas of all answers, one a line: of the types of operations and of src/server/client/answers.ts. */
function schemasFile() {
  const [answers] = exportsOf(doors.get('legate/client')).filter(({ name }) => name === 'Answers')
  const schemas = answerSchemas(checker.getDeclaredTypeOfSymbol(answers.symbol), { checker, isOurs })
  const lines = Object.entries(schemas).map(([name, schema]) => `  ${JSON.stringify(name)}: ${JSON.stringify(schema)}`)
  return `{\n${lines.join(',\n')}\n}\n`
}

function isOurs(symbol) {
  return symbol.declarations?.some((one) => one.getSourceFile().fileName.startsWith(`${root}/src/`)) ?? false
}

// Options

function optionsPage() {
  const sections = new Map()
  const parts = [...doors].map(([door, file]) => doorPart(door, file, sections))
  return [
    '# Options',
    '',
    '<!-- Made by `node scripts/reference.mjs` from the types in src. Change the doc comments there. -->',
    '',
    'Every option of every public function. A name that a function does not know is refused, so a typing mistake cannot pass',
    'unnoticed. The first part lists the functions by the door you import them from; the second part has one table per kind of options.',
    'A function without options, such as `jsonSession(folder)` of `legate/store/json`, is not listed.',
    '',
    '## Functions',
    '',
    ...parts.flat(),
    '## Options by name',
    '',
    ...[...sections.values()]
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .flatMap((section) => optionSection(section, sections)),
  ]
    .join('\n')
    .trimEnd()
    .concat('\n')
}

function doorPart(door, file, sections) {
  for (const { name, symbol } of exportsOf(file)) {
    if (OPTIONS.test(name)) optionTypesOf({ type: checker.getDeclaredTypeOfSymbol(symbol) }, sections)
  }
  const calls = exportsOf(file).flatMap(({ name, symbol }) => callsOf(name, symbol))
  const rows = calls
    .map((call) => ({ ...call, options: call.parameters.flatMap((parameter) => optionTypesOf(parameter, sections)) }))
    .filter(({ options }) => options.length > 0)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  if (rows.length === 0) return []
  const lines = rows.map(({ name, parameters, options, words, declaration }) => {
    if (words === '') noteSilent({ declarations: [declaration] }, name)
    const links = [...new Set(options)].map((option) => `[${option}](#${option.toLowerCase()})`)
    return `| \`${name}(${parameters.map((one) => one.name).join(', ')})\` | ${cell(firstSentence(words))} | ${links.join(', ')} |`
  })
  return [`### from '${door}'`, '', '| call | what it does | options |', '|---|---|---|', ...new Set(lines), '']
}

/** The function itself, or the methods of an exported interface, each with its parameters. */
function callsOf(name, symbol) {
  const isObject = (symbol.flags & (ts.SymbolFlags.Class | ts.SymbolFlags.Interface)) !== 0
  if (isObject) return PORTS.test(name) ? [] : methodsOf(name, checker.getDeclaredTypeOfSymbol(symbol))
  if ((symbol.flags & ts.SymbolFlags.Value) === 0) return []
  const signatures = checker.getTypeOfSymbol(symbol).getCallSignatures()
  return signatures.map((signature) => callOf(name, signature, docOf(symbol)))
}

/** An interface with something to leave out is one that you write; its functions are yours. */
function methodsOf(name, type) {
  const properties = propertiesOf(type)
  if (properties.some(({ symbol }) => isOptional(symbol))) return []
  return properties.flatMap((property) => {
    const signatures = checker.getTypeOfSymbol(property.symbol).getCallSignatures()
    return signatures.map((signature) => callOf(`${name}.${property.name}`, signature, docOf(property.symbol)))
  })
}

function callOf(name, signature, words) {
  const parameters = signature.getParameters().flatMap((symbol) => {
    const type = checker.getTypeOfSymbol(symbol)
    return labelled(type) ?? { name: symbol.name, type }
  })
  const own = textOf(signature.getDocumentationComment(checker))
  return { name, parameters, words: own || words, declaration: signature.declaration }
}

/** Options of one call with those of every request. */
function isOfRequest(type) {
  return type.isIntersection() && type.types.some((one) => one.getSymbol()?.name === 'CallOptions')
}

/** The parameters that a list with a name for each item stands for, as methods from a table have one. */
function labelled(type) {
  const labels = checker.isTupleType(type) ? type.target.labeledElementDeclarations : undefined
  if (labels === undefined) return undefined
  return checker
    .getTypeArguments(type)
    .map((item, at) => ({ name: labels[at]?.name.getText().replace(/^_/, '') ?? 'options', type: item }))
}

/** The names of the kinds of options among what a parameter may be. Each gets a section, and so do those inside of it. */
function optionTypesOf({ type }, sections, depth = 0) {
  // `RunsQuery & CallOptions` are the options of both.
  const members = (type.isUnion() ? type.types : [type]).flatMap((one) => (isOfRequest(one) ? one.types : [one]))
  return members.flatMap((member) => {
    const item = depth < 2 ? itemOf(member) : undefined
    if (item !== undefined) return optionTypesOf({ type: item }, sections, depth + 1)
    const symbol = member.aliasSymbol ?? member.getSymbol()
    const name = symbol?.name
    if (name === undefined || !isOptions(member, symbol)) return []
    if (!sections.has(name)) {
      const section = { name, type: member, words: docOf(symbol) }
      sections.set(name, section)
      for (const { symbol: property } of propertiesOf(member)) {
        optionTypesOf({ type: checker.getNonNullableType(checker.getTypeOfSymbol(property)) }, sections)
      }
    }
    return [name]
  })
}

/** The value of `{ [name]: value }` and of a list. */
function itemOf(type) {
  if ((type.flags & ts.TypeFlags.Object) === 0) return undefined
  return checker.getIndexTypeOfType(type, ts.IndexKind.String) ?? checker.getIndexTypeOfType(type, ts.IndexKind.Number)
}

/** Plain objects of ours with something that can be left out. */
function isOptions(type, symbol) {
  if (NO_OPTIONS.test(symbol.name) || symbol.name.startsWith('__') || (type.flags & ts.TypeFlags.Object) === 0)
    return false
  if (!isOurs(symbol) || type.getCallSignatures().length > 0 || checker.isArrayType(type)) return false
  const isClass = (symbol.flags & ts.SymbolFlags.Class) !== 0
  return !isClass && propertiesOf(type).some(({ symbol: property }) => isOptional(property))
}

function optionSection({ name, type, words }, sections) {
  const rows = optionRows({ name, type, sections }, '')
  return [
    `### ${name}`,
    '',
    ...(words === '' ? [] : [words, '']),
    '| option | type | default | what it does |',
    '|---|---|---|---|',
    ...rows,
    '',
  ]
}

function optionRows(owner, prefix) {
  return propertiesOf(owner.type).flatMap(({ name, symbol }) => {
    const own = checker.getNonNullableType(checker.getTypeOfSymbol(symbol))
    if (isLiteralObject(own)) return optionRows({ ...owner, type: own }, `${prefix}${name}.`)
    const { words, fallback } = splitDefault(docOf(symbol), symbol)
    if (words === '') noteSilent(symbol, `${owner.name}.${prefix}${name}`)
    return [
      `| \`${prefix}${name}\` | ${linked(typeText(symbol), owner.sections)} | ${cell(fallback)} | ${cell(words)} |`,
    ]
  })
}

/** `engine: { workers?: number }`: its options are shown as `engine.workers`. */
function isLiteralObject(type) {
  const symbol = type.getSymbol()
  const isLiteral = symbol?.name === '__type' && type.aliasSymbol === undefined
  return isLiteral && propertiesOf(type).length > 0 && type.getCallSignatures().length === 0
}

/** What a doc comment says happens when an option is left out, and the rest of it. */
function splitDefault(doc, symbol) {
  if (!isOptional(symbol)) return { words: doc, fallback: 'required' }
  const sentences = doc.split(/(?<=[.!?])\s+(?=[A-Z`])/)
  const isDefault = (sentence) => /^(?:Default\b|Left out\b|Unsaid\b)/.test(sentence)
  const fallback = sentences
    .filter(isDefault)
    .map((sentence) => sentence.replace(/^(?:Default|Left out|Unsaid)[:,]?\s*/, '').replace(/\.$/, ''))
  const words = sentences.filter((sentence) => !isDefault(sentence)).join(' ')
  return { words, fallback: fallback.join('; ') || impliedDefault(doc, symbol) }
}

/** `\`queue\` (default) waits`; a flag is off, unless its doc comment says what false does. */
function impliedDefault(doc, symbol) {
  const [, marked] = /`([^`]+)`[^`;.]*\((?:the )?default\)/.exec(doc) ?? []
  if (marked !== undefined) return `\`${marked}\``
  // Optional here and required where it is declared: the function has a value of its own for it.
  if (symbol.declarations?.[0]?.questionToken === undefined) return 'built in'
  const isFlag = typeText(symbol) === 'boolean'
  return isFlag ? `\`${doc.startsWith('False:')}\`` : 'none'
}

// What both pages need

function propertiesOf(type) {
  return checker
    .getPropertiesOfType(type)
    .filter((symbol) => !/^(?:__@|~)/.test(symbol.name) && !isHidden(symbol))
    .map((symbol) => ({ name: symbol.name, symbol }))
}

/** Private, or there only to say that it cannot be given. */
function isHidden(symbol) {
  const [declaration] = symbol.declarations ?? []
  const flags = declaration === undefined ? 0 : ts.getCombinedModifierFlags(declaration)
  const isPrivate = (flags & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) !== 0
  return isPrivate || checker.getTypeOfSymbol(symbol).flags === ts.TypeFlags.Undefined
}

function noteSilent(symbol, name) {
  const [declaration] = symbol.declarations ?? []
  const source = declaration?.getSourceFile()
  const line = source === undefined ? 0 : source.getLineAndCharacterOfPosition(declaration.getStart()).line + 1
  silent.add(`${path.relative(root, source?.fileName ?? '')}:${line} ${name}`)
}

function isOptional(symbol) {
  return (symbol.flags & ts.SymbolFlags.Optional) !== 0
}

function docOf(symbol) {
  return textOf(symbol.getDocumentationComment(checker))
}

function textOf(parts) {
  return ts.displayPartsToString(parts).replaceAll(/\s+/g, ' ').trim()
}

function firstSentence(text) {
  return text.split(/(?<=[.!?:])\s+(?=[A-Z`])/)[0].replace(/:$/, '.')
}

/** The type as it is written in the source; a method as a function. */
function typeText(symbol) {
  const [declaration] = symbol.declarations ?? []
  if (declaration === undefined) return checker.typeToString(checker.getTypeOfSymbol(symbol))
  if (ts.isMethodSignature(declaration)) return 'function'
  const text = declaration.type?.getText() ?? checker.typeToString(checker.getTypeOfSymbol(symbol))
  return text
    .replaceAll(/\/\*.*?\*\//gs, '')
    .replaceAll(/\breadonly /g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

/** A type that has a section leads to it. */
function linked(type, sections) {
  return sections.has(type) ? `[${code(type)}](#${type.toLowerCase()})` : code(type)
}

function code(text) {
  return `\`${text.replaceAll('|', '\\|')}\``
}

function cell(text) {
  return text.replaceAll(/(?<!\\)\|/g, '\\|')
}
