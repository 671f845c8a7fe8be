// How the code is laid out, in figures: files, folders, names, comments, prose, and the walk of one delegation.
//   node scripts/house.mjs            all figures as a table
//   node scripts/house.mjs --walk     also every step of the walk, by file and function
//   node scripts/house.mjs --list X   the places behind a figure: small, folders, cycles, twice, functions, parameters, promises,
//                                     lazy, comments, prose
//   node scripts/house.mjs --check    fails where a figure is larger than test/house.json allows; --write lowers what fell

import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import ts from 'typescript'

const root = path.resolve(import.meta.dirname, '..')
const sourceRoot = path.join(root, 'src')

/**
 * Files that every function passes through and nobody reads on a walk: values, rows and where they are kept. States and kinds
 * count as rows.
 */
const PLUMBING = [
  /^core\/base\//,
  /^core\/store\//,
  /^stores\//,
  /^core\/graph\/(history\/)?(changes|copy|draft|limits|rows[^/]*|reader|states|kinds|commit|event|usage|body|content|pending-node|outcome)\.ts$/,
  /^testing\//,
]

/** Names that two files export because both are a door of the same operation. */
const SAME_OPERATION = new Map([
  ...['audit', 'convert', 'explain', 'forget', 'prune', 'restored', 'serve'].map((name) => [
    name,
    'a command has its name',
  ]),
  ...['bury', 'migrate', 'putSpent', 'readChanges', 'readSpent', 'removeTree'].map((name) => [
    name,
    'each store has its own',
  ]),
  ...['runKind', 'runReply'].map((name) => [name, 'one loads the other with its first call']),
])

/** The folders of src, apart from the doors. */
const GROUPS = ['core', 'stores', 'recipes', 'server', 'cli', 'testing']

/** One delegation in a warm process, which prints the functions it called. */
const WALK = `
const calls = (globalThis.walk = [])
const { agent, createRuntime } = await import('./index.js')
const { scriptedModel } = await import('./testing/index.js')
const input = { type: 'object', properties: { topic: { type: 'string' } }, required: ['topic'] }
const rounds = (...answers) => scriptedModel(Array.from({ length: 4 }, () => answers).flat())
const host = agent({
  name: 'editor',
  instructions: 'Write.',
  model: rounds({ calls: [{ name: 'research', input: { topic: 'QUIC' } }] }, 'Done.'),
  subagents: { research: agent({ name: 'researcher', instructions: 'Research.', input, model: rounds('Fast.') }) },
})
const runtime = createRuntime()
for (let warm = 0; warm < 3; warm += 1) await runtime.run(host, 'hello').result
calls.length = 0
const { status } = await runtime.run(host, 'hello').result
const walked = calls.slice()
await runtime.close()
if (status !== 'completed') throw new Error(status)
process.stdout.write(JSON.stringify(walked))
`

const flag = { type: 'boolean' }
const { values } = parseArgs({ options: { walk: flag, list: { type: 'string' }, check: flag, write: flag } })

const sources = sourcesBelow(sourceRoot)
/** The page is one room. */
const page = sourcesBelow(path.join(root, 'web'))

const places = {
  small: sources.filter(({ lines }) => lines <= 30).map(({ file, lines }) => `${file} ${lines}`),
  folders: [...folderSizes(sources), ...folderSizes(page)].sort((a, b) => b[1] - a[1]).map((found) => found.join(' ')),
  cycles: [...folderCycles(sources, roomOf), ...folderCycles(page, () => 'web')],
  twice: [...typesDeclaredTwice(sources), ...typesDeclaredTwice(page)],
  functions: functionsExportedTwice(),
  parameters: typesForOneParameter(),
  promises: nodesWhere(isPromiseTest),
  lazy: nodesWhere(isLazyImport, filesOfRoot()),
  comments: bareComments(),
}

await main()

async function main() {
  if (values.list !== undefined) {
    const list = values.list === 'prose' ? prose().worst : places[values.list]
    if (list === undefined) throw new Error(`--list takes ${Object.keys(places).join(', ')} or prose.`)
    console.log(list.join('\n'))
    return
  }
  const walk = walkOneDelegation()
  const docs = prose()
  const figures = {
    ...Object.fromEntries(GROUPS.flatMap(sizesOf)),
    'source files': sources.length,
    'source files of the page': page.length,
    'source lines': sources.reduce((sum, { lines }) => sum + lines, 0),
    'files of at most 30 lines': places.small.length,
    'largest folder': Number(places.folders[0].split(' ')[1]),
    'folder cycles inside rooms': places.cycles.length,
    'walk of one delegation: files': walk.files,
    'walk of one delegation: hops': walk.hops,
    'walk of one delegation: room hops': walk.roomHops,
    'names at the root': rootNames(),
    'lazy imports of the root': places.lazy.length,
    'exported type names declared twice': places.twice.length,
    'function names exported twice': places.functions.length,
    'types for one parameter': places.parameters.length,
    'instanceof Promise': places.promises.length,
    'comments that begin with a bare What, Of or The same': places.comments.length,
    'docs: "you" per 1,000 words': docs.you,
    'docs: "what is" clauses per 1,000 words': docs.whatIs,
    'docs: words a sentence': docs.sentence,
  }
  if (values.check || values.write) return compare(figures)
  for (const [name, value] of Object.entries(figures)) console.log(`${name.padEnd(56)} ${value}`)
  if (values.walk) console.log(`\n${walk.steps.join('\n')}`)
}

function sizesOf(group) {
  const inside = sources.filter(({ file }) => file.startsWith(`${group}/`))
  const lines = inside.reduce((sum, file) => sum + file.lines, 0)
  return [
    [`${group}: files`, inside.length],
    [`${group}: lines`, lines],
  ]
}

/** A pin falls with its figure. Who raises a pin says why beside it. */
function compare(figures) {
  const file = path.join(root, 'test/house.json')
  const pins = JSON.parse(readFileSync(file, 'utf8'))
  for (const [name, pin] of Object.entries(pins)) {
    const value = figures[name]
    if (values.write) pin.most = Math.min(pin.most, value)
    else if (!(value <= pin.most)) console.log(`${name}: ${value}, at most ${pin.most}. ${pin.word}`)
    else if (value < pin.most)
      console.log(`${name}: ${value}, and its pin is ${pin.most}: run node scripts/house.mjs --write`)
    if (value !== pin.most) process.exitCode = 1
  }
  if (values.write) writeFileSync(file, `${JSON.stringify(pins, null, 2)}\n`)
}

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(folder, entry.name)
    return entry.isDirectory() ? filesBelow(file) : [file]
  })
}

function sourcesBelow(folder) {
  return filesBelow(folder)
    .filter((file) => /\.tsx?$/.test(file) && !file.endsWith('.test.ts'))
    .map((file) => readSource(file, folder))
}

function readSource(absolute, folder) {
  const text = readFileSync(absolute, 'utf8')
  const tree = ts.createSourceFile(absolute, text, ts.ScriptTarget.Latest, true)
  const file = path.relative(folder, absolute)
  return { absolute, file, text, tree, lines: text.split('\n').length - 1 }
}

function folderSizes(among) {
  const sizes = new Map()
  for (const { absolute } of among) {
    const folder = path.relative(root, path.dirname(absolute))
    sizes.set(folder, (sizes.get(folder) ?? 0) + 1)
  }
  return [...sizes]
}

/** Groups of folders of one room that all reach each other by imports, types included. */
function folderCycles(among, room) {
  const edges = new Map()
  for (const source of among) {
    const from = path.dirname(source.file)
    for (const target of relativeImports(source)) {
      const to = path.dirname(path.join(from, target))
      if (to !== from && !to.startsWith('..') && room(to) === room(from))
        edges.set(from, (edges.get(from) ?? new Set()).add(to))
    }
  }
  const reaches = (from, to, seen = new Set()) =>
    [...(edges.get(from) ?? [])].some((next) => next === to || (!seen.has(next) && reaches(next, to, seen.add(next))))
  const folders = [...edges.keys()]
  const groups = folders.map((a) => folders.filter((b) => a === b || (reaches(a, b) && reaches(b, a))).sort())
  return [...new Set(groups.filter(({ length }) => length > 1).map((group) => group.join(' <-> ')))]
}

function relativeImports({ tree }) {
  const found = []
  const visit = (node) => {
    const from = node.moduleSpecifier ?? (isLazyImport(node) ? node.arguments[0] : node.argument?.literal)
    if (from !== undefined && ts.isStringLiteral(from) && from.text.startsWith('.')) found.push(from.text)
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return found
}

function isLazyImport(node) {
  return ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword
}

/** Rooms of the core stand for themselves; around it a group is a room. */
function roomOf(file) {
  const [group, room] = file.split('/')
  return group === 'core' ? `${group}/${room}` : group
}

function typesDeclaredTwice(among) {
  const declared = new Map()
  for (const { file, tree } of among) {
    for (const statement of tree.statements) {
      const isType =
        ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement) || ts.isClassDeclaration(statement)
      if (!isType || !statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) continue
      const name = statement.name?.text
      declared.set(name, (declared.get(name) ?? new Set()).add(file))
    }
  }
  return [...declared].filter(([, files]) => files.size > 1).map(([name, files]) => `${name}: ${[...files].join(', ')}`)
}

function functionsExportedTwice() {
  const declared = new Map()
  for (const { file, tree } of sources) {
    for (const statement of tree.statements) {
      if (!ts.isFunctionDeclaration(statement) || !isExported(statement) || statement.body === undefined) continue
      const name = statement.name?.text
      declared.set(name, (declared.get(name) ?? new Set()).add(file))
    }
  }
  return [...declared]
    .filter(([name, files]) => files.size > 1 && !SAME_OPERATION.has(name))
    .map(([name, files]) => `${name}: ${[...files].join(', ')}`)
}

function isExported({ modifiers }) {
  return modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true
}

/** Types that are named once, as the type of a parameter. */
function typesForOneParameter() {
  const named = new Map()
  for (const { tree } of sources) {
    const visit = (node) => {
      if (ts.isIdentifier(node)) named.set(node.text, [...(named.get(node.text) ?? []), node])
      ts.forEachChild(node, visit)
    }
    visit(tree)
  }
  const isOfParameter = ({ parent }) => ts.isTypeReferenceNode(parent) && ts.isParameter(parent.parent)
  return sources.flatMap(({ file, tree }) =>
    tree.statements
      .filter((statement) => ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement))
      .filter(({ name }) => {
        const uses = named.get(name.text).filter((node) => node !== name)
        return uses.length === 1 && isOfParameter(uses[0])
      })
      .map(({ name }) => `${file} ${name.text}`),
  )
}

function nodesWhere(test, among = sources) {
  return among.flatMap(({ file, tree }) => {
    const found = []
    const visit = (node) => {
      if (test(node)) found.push(`${file}:${tree.getLineAndCharacterOfPosition(node.getStart()).line + 1}`)
      ts.forEachChild(node, visit)
    }
    visit(tree)
    return found
  })
}

function isPromiseTest(node) {
  return (
    ts.isBinaryExpression(node) &&
    node.operatorToken.kind === ts.SyntaxKind.InstanceOfKeyword &&
    node.right.getText() === 'Promise'
  )
}

/** The files that importing the root reads. */
function filesOfRoot() {
  const byFile = new Map(sources.map((source) => [source.file, source]))
  const found = new Set()
  const visit = (source) => {
    if (source === undefined || found.has(source)) return
    found.add(source)
    for (const statement of source.tree.statements) {
      const from = statement.moduleSpecifier?.text
      const clause = statement.importClause ?? statement
      if (from?.startsWith('.') && !clause.isTypeOnly) {
        visit(byFile.get(path.relative(sourceRoot, path.resolve(path.dirname(source.absolute), from))))
      }
    }
  }
  visit(byFile.get('index.ts'))
  return [...found]
}

function bareComments() {
  return sources.flatMap(({ file, text }) =>
    [...text.matchAll(/(?:\/\*\*?\s*(?:\*\s*)?|^\s*\/\/\s*)(What|Of|The same)\b.*/gm)].map(
      (match) => `${file}:${text.slice(0, match.index).split('\n').length} ${match[0].trim()}`,
    ),
  )
}

function rootNames() {
  const program = ts.createProgram([path.join(sourceRoot, 'index.ts')], {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ESNext,
    allowImportingTsExtensions: true,
    noEmit: true,
    skipLibCheck: true,
  })
  const checker = program.getTypeChecker()
  const index = program.getSourceFile(path.join(sourceRoot, 'index.ts'))
  return checker.getExportsOfModule(checker.getSymbolAtLocation(index)).length
}

/** README and guide without code, tables and headings. */
function prose() {
  const pages = [path.join(root, 'README.md'), ...filesBelow(path.join(root, 'docs/guide'))]
  const text = pages.map((page) => plainText(readFileSync(page, 'utf8'))).join('\n\n')
  const words = text.match(/[A-Za-z'’-]+/g)?.length ?? 0
  const sentences = text
    .split(/(?<=[.!?])\s+|\n{2,}/)
    .map((sentence) => sentence.match(/[A-Za-z'’-]+/g)?.length ?? 0)
    .filter((count) => count > 2)
  const share = (pattern) => (((text.match(pattern)?.length ?? 0) * 1000) / words).toFixed(1)
  const worst = text.split(/(?<=[.!?])\s+|\n{2,}/).filter((sentence) => sentence.split(/\s+/).length > 35)
  return {
    you: share(/\b(you|your)\b/gi),
    whatIs: share(/\bwhat (is|was|it|are|were|has|had)\b/gi),
    sentence: (sentences.reduce((sum, count) => sum + count, 0) / sentences.length).toFixed(1),
    worst,
  }
}

function plainText(page) {
  return page
    .replace(/```[\s\S]*?```/g, '')
    .split('\n')
    .filter((line) => !/^\s*(\||#|<)/.test(line))
    .map((line) => line.replace(/^\s*[-*] /, '\n'))
    .join('\n')
    .replace(/`[^`]*`/g, 'code')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
}

/**
 * Runs one delegation in sources that report the start of each named function: a host calls a typed subagent, which answers,
 * and then answers itself. A hop is a step from a function to one of another file.
 */
function walkOneDelegation() {
  const folder = path.join(root, `node_modules/.cache/legate-walk-${process.pid}`)
  for (const source of sources) writeReporting(source, folder)
  const program = path.join(folder, 'walk.mjs')
  writeFileSync(program, WALK)
  const { stdout, stderr, status } = spawnSync(process.execPath, [program], { encoding: 'utf8', maxBuffer: 1 << 28 })
  rmSync(folder, { recursive: true, force: true })
  if (status !== 0) throw new Error(`The walk failed: ${stderr}`)
  const all = JSON.parse(stdout)
  const steps = all.filter(([file]) => !PLUMBING.some((pattern) => pattern.test(file)))
  const hops = (of) => steps.filter(([file], at) => at > 0 && of(file) !== of(steps[at - 1][0])).length
  return {
    files: new Set(steps.map(([file]) => file)).size,
    hops: hops((file) => file),
    roomHops: hops(roomOf),
    steps: steps.map(([file, name]) => `${file} ${name}`),
  }
}

function writeReporting({ file, tree }, folder) {
  const target = path.join(folder, file.replace(/\.ts$/, '.js'))
  mkdirSync(path.dirname(target), { recursive: true })
  const reporting = ts.transform(tree, [(context) => (node) => reportCalls(node, file, context)]).transformed[0]
  const text = ts.createPrinter().printFile(reporting)
  const { outputText } = ts.transpileModule(text, {
    compilerOptions: {
      module: ts.ModuleKind.ESNext,
      target: ts.ScriptTarget.ES2023,
      rewriteRelativeImportExtensions: true,
    },
  })
  writeFileSync(target, outputText)
}

function reportCalls(tree, file, context) {
  const { factory } = context
  const visit = (node) => {
    const next = ts.visitEachChild(node, visit, context)
    const name = nameOf(next)
    if (name === undefined || next.body === undefined || !ts.isBlock(next.body)) return next
    const call = factory.createExpressionStatement(
      factory.createIdentifier(`globalThis.walk?.push([${JSON.stringify(file)}, ${JSON.stringify(name)}])`),
    )
    const statements = next.body.statements
    const start = statements.findIndex((statement) => !isDirectiveOrSuper(statement))
    const at = start === -1 ? statements.length : start
    const body = factory.updateBlock(next.body, [...statements.slice(0, at), call, ...statements.slice(at)])
    return withBody(next, body, factory)
  }
  return ts.visitEachChild(tree, visit, context)
}

function isDirectiveOrSuper(statement) {
  if (!ts.isExpressionStatement(statement)) return false
  const { expression } = statement
  return (
    ts.isStringLiteral(expression) ||
    (ts.isCallExpression(expression) && expression.expression.kind === ts.SyntaxKind.SuperKeyword)
  )
}

function nameOf(node) {
  if (ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node)) return node.name?.getText?.() ?? node.name?.text
  return undefined
}

function withBody(node, body, factory) {
  if (ts.isFunctionDeclaration(node)) {
    const { modifiers, asteriskToken, name, typeParameters, parameters, type } = node
    return factory.updateFunctionDeclaration(
      node,
      modifiers,
      asteriskToken,
      name,
      typeParameters,
      parameters,
      type,
      body,
    )
  }
  const { modifiers, asteriskToken, name, questionToken, typeParameters, parameters, type } = node
  return factory.updateMethodDeclaration(
    node,
    modifiers,
    asteriskToken,
    name,
    questionToken,
    typeParameters,
    parameters,
    type,
    body,
  )
}
