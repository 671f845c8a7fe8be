// node scripts/scenarios.mjs: writes docs/scenarios.md from the names of the tests. npm test does it too.
//
// A test cites a scenario in its name or in that of a suite around it: `cybros A33`, `agentscope 8.2/23-30, 36`,
// `reliability L3`. Under a suite named `agentscope 8.6: ...` a test may begin with the number alone: `79 and 80: ...`.
// Invariants of ARCHITECTURE.md are cited as they are: `I6`.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript'

const root = path.resolve(import.meta.dirname, '..')
const page = path.join(root, 'docs/scenarios.md')
const sources = ['agentscope', 'aster-goose', 'agently', 'cybros', 'peers', 'reliability']
const number = String.raw`(?!I\d)[A-Z]*-?\d+`
const numbers = `${number}(?:(?:, | and | to |-|–)${number})*`
const citation = new RegExp(
  String.raw`\b(${sources.join('|')}) (?:(\d+\.\d+|\d+(?=/))(?:/(${numbers}))?|(${numbers}))`,
  'g',
)
const leading = /^(\d+(?:(?:, | and | to |-|–)\d+)*)[:,]/
const invariant = /\bI(?:1[0-4]|[1-9])\b/g

const heading = [
  '# Scenarios',
  '',
  'This page says which tests prove what. Tests cite an invariant (`I1` to `I14`, see [ARCHITECTURE.md](../ARCHITECTURE.md)) or a',
  'scenario in their names, and `node scripts/scenarios.mjs` writes the page from these names. A scenario is a behaviour that users',
  'of another framework rely on. It has the name of that framework and a number, so that one number means one thing in all tests;',
  'what it says is in the second column, in the words of the tests.',
  '',
  '## Invariants',
  '',
  '| cited as | proved in |',
  '|---|---|',
]

/** How many tests of a suite are named. */
const MOST_INSIDE = 5

const TITLES = {
  agentscope: 'AgentScope and AgentScope-Java',
  'aster-goose': 'Aster and goose',
  agently: 'Agently',
  cybros: 'cybros',
  peers: 'Other frameworks',
  reliability: 'Reliability',
}

/** Scenarios that are not tested as they stand, and why. */
const reasons = [
  [
    'agentscope 8.9/119',
    "A child is private: hooks of its host see its tool calls and change nothing, unless the host says `hooks: 'inherit'` (`agentscope 8.2/23-30`, `test/delegation/hooks-and-handles.test.ts`). What must bind every child is a grant or an extension of the runtime.",
  ],
  [
    'agentscope 8.9/120',
    'A child is a conversation in the store of its host: processes that share a store run it anywhere (`test/crash/share.test.ts`). A child behind HTTP is an agent of A2A: `a2aAgent({ url })` (`test/surfaces/a2a/client.test.ts`).',
  ],
  [
    'agentscope 8.9/121',
    'Any process that opens the store can read, follow and cancel a child by its id, and answer what it asks; only its host goes on with it (`cybros A77`). What a person shall talk to is a conversation of its own: `runtime.run(agent, input)`.',
  ],
  [
    'agentscope 8.9/122',
    'A host with `backgroundSubagents({ agents })` leads members by name: `subagent_send` is their inbox, each end, good or bad, is told once. Members that know each other are left out: what one may do is narrowed along one line of hosts.',
  ],
  [
    'agently 19/29-31',
    'Settings are values in code: `agent({ settings })` and `request().options()` (`agently 19/24`, `28`). There is no tree of settings with lists to append to, aliases or switches; models by name and keys are found as [model](guide/model.md) says.',
  ],
  [
    'agently 19/36',
    'Frames of a provider are read by its package for the AI SDK; a model gives one `finish` with reason and usage, and a stream without it was cut (`agently 19/35`).',
  ],
  [
    'agently 19/41',
    'The parts of an answer are kept with what the provider wants back (`providerMetadata`), not its raw message: it would be stored twice.',
  ],
  [
    'agently 19/115',
    '`chatSession({ maxLength })` shows the newest messages that fit. Memos and resizing of one’s own are left to extensions; what a model is shown of it is bounded by `contextTurns` and summed up when its window nears its end (`createRuntime({ compaction })`, `test/conversation/history/context.test.ts`); the record stays whole.',
  ],
]

main()

function main() {
  const cited = citations()
  const names = [...cited.keys()].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
  const invariants = names.filter((name) => !name.includes(' ')).map((name) => row(name, cited.get(name)))
  const scenarios = sources.flatMap((source) => section(source, cited, names))
  writeFileSync(page, `${[...heading, ...invariants, ...scenarios, ...reasonLines()].join('\n')}\n`)
  console.log(`${names.length} invariants and scenarios in ${page}`)
}

/** The scenarios of one framework, each with its words. */
function section(source, cited, names) {
  const own = names.filter((name) => name.startsWith(`${source} `))
  const rows = own.map((name) => scenarioRow(name, cited.get(name)))
  return ['', `## ${TITLES[source]}`, '', '| cited as | what holds | proved in |', '|---|---|---|', ...rows]
}

function reasonLines() {
  const lines = reasons.map(([name, why]) => `| \`${name}\` | ${why} |`)
  return ['', '## Not tested as they stand', '', '| scenario | why |', '|---|---|', ...lines]
}

/** What is cited: by which files, and in which words. */
function citations() {
  const cited = new Map()
  for (const file of testFiles()) {
    for (const { scenario, words } of scenariosIn(readFileSync(path.join(root, file), 'utf8'))) {
      if (!cited.has(scenario)) cited.set(scenario, { files: new Set(), words: new Set() })
      cited.get(scenario).files.add(file)
      if (words !== '') cited.get(scenario).words.add(words)
    }
  }
  return cited
}

function row(name, { files }) {
  return `| \`${name}\` | ${[...files].map(link).join(', ')} |`
}

function scenarioRow(name, { files, words }) {
  return `| \`${name}\` | ${[...words].join('<br>')} | ${[...files].map(link).join(', ')} |`
}

/** Every scenario that a file's tests cite, with the words of the test or of the suite. */
function scenariosIn(text) {
  const found = []
  const visit = (node, names) => {
    const name = ts.isCallExpression(node) ? testName(node) : undefined
    const inner = name === undefined ? names : [...names, name]
    if (name !== undefined) {
      const words = wordsOf(node, inner)
      for (const scenario of citedBy(inner)) found.push({ scenario, words })
    }
    ts.forEachChild(node, (child) => visit(child, inner))
  }
  visit(ts.createSourceFile('test.ts', text, ts.ScriptTarget.ES2023), [])
  return found
}

/** The words of a name without its citations, behind those of the suites around it; for a suite with those of its first tests. */
function wordsOf(node, names) {
  const said = names.map(withoutCitations).filter((words) => words !== '')
  const inside = testsIn(node)
  const more = inside.length > MOST_INSIDE ? '; …' : ''
  const tests = inside.length === 0 ? [] : [inside.slice(0, MOST_INSIDE).join('; ') + more]
  return cell([...said, ...tests].join(': '))
}

function testsIn(node) {
  const found = []
  const visit = (inner) => {
    const name = ts.isCallExpression(inner) ? testName(inner) : undefined
    if (name !== undefined) found.push(withoutCitations(name))
    ts.forEachChild(inner, visit)
  }
  ts.forEachChild(node, visit)
  return found.filter((words) => words !== '')
}

function withoutCitations(name) {
  return name
    .replace(citation, '')
    .replace(leading, '')
    .replace(invariant, '')
    .replace(/^(?:[\s,:/]|\d+(?:[./-]\d+)*(?=[:,])|and\b)+/, '')
    .replace(/%[a-z]|\$[a-z]\w*/gi, '…')
    .trim()
    .replace(/[;,.]$/, '')
}

/** A text that may stand in a table. */
function cell(words) {
  return words.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ')
}

function link(file) {
  return `[${file}](../${file})`
}

function testFiles() {
  return ['src', 'test']
    .flatMap((folder) =>
      readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) =>
        path.join(folder, file),
      ),
    )
    .map((file) => file.split(path.sep).join('/'))
    .filter((file) => file.endsWith('.test.ts') || file.includes('/suites/'))
    .sort()
}

/** The name in `test('...')`, `describe.each(...)('...')`, `test.skipIf(...)('...')`. */
function testName(call) {
  const [name] = call.arguments
  if (name === undefined || !ts.isStringLiteralLike(name)) return undefined
  let callee = call.expression
  while (ts.isCallExpression(callee) || ts.isPropertyAccessExpression(callee)) callee = callee.expression
  return ts.isIdentifier(callee) && ['test', 'it', 'describe'].includes(callee.text) ? name.text : undefined
}

/** What the innermost of these names cites; a number alone belongs to the section that a name around it gives. */
function citedBy(names) {
  const own = names.at(-1) ?? ''
  const found = placesIn(own)
  const open = placesIn(names.slice(0, -1).join(' ')).filter(({ list }) => list === undefined)
  const [, list] = leading.exec(own) ?? []
  if (list !== undefined && open.length > 0) found.push({ ...open.at(-1), list })
  return [...found.flatMap(spell), ...(own.match(invariant) ?? [])]
}

function placesIn(name) {
  return [...name.matchAll(citation)].map(([, source, section, inSection, alone]) => ({
    source,
    section,
    list: section === undefined ? alone : inSection,
  }))
}

/** `8.2/23-25, 30` is four scenarios; a section alone is one. */
function spell({ source, section, list }) {
  if (list === undefined) return [`${source} ${section}`]
  const place = section === undefined ? '' : `${section}/`
  return list
    .split(/, | and /)
    .flatMap((part) => range(part))
    .map((number) => `${source} ${place}${number}`)
}

function range(part) {
  const [, letters, first, last] = /^([A-Z]*-?)(\d+)(?: to |-|–)[A-Z]*-?(\d+)$/.exec(part) ?? []
  if (first === undefined) return [part]
  return Array.from({ length: Math.max(0, last - first) + 1 }, (_, step) => `${letters}${Number(first) + step}`)
}
