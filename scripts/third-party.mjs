// Writes THIRD-PARTY.md: the packages that are installed with Legate, and those that the build copies into dist, with their licences.
//   node scripts/third-party.mjs          writes the page
//   node scripts/third-party.mjs --check  fails if the page is not what it would write; sizes may differ, as those of binaries do

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { installed, versionsOf } from './installed.mjs'

/** Why each dependency is there. */
const PURPOSES = {
  ajv: 'checks values against JSON Schema',
  libsql:
    'SQLite on Node 20. Node 22.13 and newer have their own: there `npm install --omit=optional` leaves out libsql',
  'minijinja-js': 'templates of recipes and prompt files, in WebAssembly',
  picocolors: 'colours of the command line',
  re2js: 'patterns of rules and schemas, in linear time whoever wrote them',
  'smol-toml': 'agent files and settings in TOML',
  yaml: 'agent files and recipes in YAML',
}

/** Why packages are copied into dist, by how their names begin. */
const COPIED = {
  '@a2a-js/': 'A2A, as client and as server',
  '@agentclientprotocol/': 'ACP, as client and as server',
  '@ai-sdk/': 'models by name',
  '@modelcontextprotocol/': 'MCP, as client and as server',
  'pkce-challenge': 'part of the client of MCP',
  'eventsource-parser': 'streams of models by name and of MCP',
  '@hono/': 'HTTP of the server',
  hono: 'routes of the server',
  jose: 'tokens of OIDC providers, and signed cards of A2A',
  zod: 'checks in the code of models by name, MCP and ACP',
}

const root = path.resolve(import.meta.dirname, '..')
const page = path.join(root, 'THIRD-PARTY.md')
const names = copied('tsdown.config.ts')
const unknown = names.filter((name) => !Object.keys(COPIED).some((start) => name.startsWith(start)))
if (unknown.length > 0) throw new Error(`Say in scripts/third-party.mjs what these are for: ${unknown.join(', ')}.`)
const all = [...new Set([...names, ...copied('web/vite.config.ts')])].sort()

const { values } = parseArgs({ options: { check: { type: 'boolean' } } })
const text = [...introduction(), ...all.flatMap(section)].join('\n')
if (!values.check) writeFileSync(page, text)
else if (!existsSync(page) || withoutSizes(readFileSync(page, 'utf8')) !== withoutSizes(text)) {
  console.error('Run node scripts/third-party.mjs: THIRD-PARTY.md is not what is installed and what the build copies.')
  process.exitCode = 1
}

function introduction() {
  return [
    '# Third-party code',
    '',
    'Made by `node scripts/third-party.mjs`.',
    '',
    '## Installed with Legate',
    '',
    'npm installs these beside Legate. `npm test` fails where they and Legate become more than `scripts/package.mjs` allows.',
    '',
    '| package | with what comes with it | what it is for |',
    '|---|---|---|',
    ...installed().map(installedRow),
    '',
    'libsql has a binary for each platform; on Linux npm installs two, for glibc and for musl.',
    '',
    '`pg`, `@dbos-inc/dbos-sdk` and `@opentelemetry/api` are optional: who uses a store on PostgreSQL, `dbos()` or spans installs them.',
    '',
    '## Copied into `dist`',
    '',
    'The build copies the parts of these that Legate calls, and a program loads the parts when it first needs them. npm does not install',
    'these packages. Your programs install what they import, such as `@ai-sdk/openai` or `zod`; the version need not be the one here.',
    '`npm audit` in your project does not see what was copied: a fix of a package comes with a release of Legate.',
    '',
    '| packages | what they are for |',
    '|---|---|',
    ...Object.entries(COPIED).map(copiedRow),
    '| all others below | the inspector |',
    '',
  ]
}

function installedRow({ name, version, places, bytes }) {
  const purpose = PURPOSES[name]
  if (purpose === undefined) throw new Error(`Say in scripts/third-party.mjs what ${name} is for.`)
  const packages = places.length === 1 ? '' : ` in ${places.length} packages`
  return `| \`${name}\` ${version} | ${(bytes / 1e6).toFixed(1)} MB${packages} | ${purpose} |`
}

function copiedRow([start, purpose]) {
  const those = names.filter((name) => name.startsWith(start)).map((name) => `\`${name}\``)
  return `| ${those.join(', ')} | ${purpose} |`
}

/** What other platforms have another number of. */
function withoutSizes(page) {
  return page.replaceAll(/\d+\.\d MB(?: in \d+ packages)?/g, 'MB')
}

/** The packages that `tsdown.config.ts` or the configuration of the page let in. */
function copied(file) {
  const [, list = ''] = /onlyBundle: \[([^\]]*)\]/.exec(readFileSync(path.join(root, file), 'utf8')) ?? []
  return [...list.matchAll(/'([^']+)'/g)].map(([, name]) => name)
}

function section(name) {
  const { license, homepage, repository } = manifestOf(name)
  const place = homepage ?? repository?.url ?? repository ?? ''
  const licence = readFileSync(licenceOf(name), 'utf8').trim().split(/\r?\n/)
  const versions = versionsOf(name, all).join(', ')
  return [`### ${name} ${versions}`, '', `${license}, ${place}`, '', '```text', ...licence, '```', '']
}

/** The file of a package, or of another one from the same repository with the same licence. */
function licenceOf(name) {
  const own = licenceIn(name)
  if (own !== undefined) return own
  const { license, repository } = manifestOf(name)
  const isSame = (one) => one.license === license && one.repository?.url === repository?.url
  const [found] = all.filter((one) => isSame(manifestOf(one))).flatMap((one) => licenceIn(one) ?? [])
  if (found === undefined) throw new Error(`${name} has no licence file.`)
  return found
}

function licenceIn(name) {
  const files = ['LICENSE', 'LICENSE.md', 'LICENCE'].map((one) => path.join(root, 'node_modules', name, one))
  return files.find((one) => existsSync(one))
}

function manifestOf(name) {
  return JSON.parse(readFileSync(path.join(root, 'node_modules', name, 'package.json'), 'utf8'))
}
