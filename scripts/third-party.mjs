// Writes THIRD-PARTY.md: the packages that the build copies into dist, with their licences.
//   node scripts/third-party.mjs          writes the page
//   node scripts/third-party.mjs --check  fails if the page is not what it would write

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'

const root = path.resolve(import.meta.dirname, '..')
const page = path.join(root, 'THIRD-PARTY.md')

const { values } = parseArgs({ options: { check: { type: 'boolean' } } })
const text = ['# Third-party code', '', introduction(), '', ...bundled().flatMap(section)].join('\n')
if (!values.check) writeFileSync(page, text)
else if (!existsSync(page) || readFileSync(page, 'utf8') !== text) {
  console.error('Run node scripts/third-party.mjs: THIRD-PARTY.md is not what the build copies.')
  process.exitCode = 1
}

function introduction() {
  return 'These packages are copied into `dist` when Legate is built. Made by `node scripts/third-party.mjs`.'
}

/** The packages that `tsdown.config.ts` and the configuration of the page let in. */
function bundled() {
  const names = ['tsdown.config.ts', 'web/vite.config.ts'].flatMap((file) => {
    const [, list = ''] = /onlyBundle: \[([^\]]*)\]/.exec(readFileSync(path.join(root, file), 'utf8')) ?? []
    return [...list.matchAll(/'([^']+)'/g)].map(([, name]) => name)
  })
  return [...new Set(names)].sort()
}

function section(name) {
  const folder = path.join(root, 'node_modules', name)
  const { version, license, homepage, repository } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))
  const file = ['LICENSE', 'LICENSE.md', 'LICENCE'].map((one) => path.join(folder, one)).find((one) => existsSync(one))
  if (file === undefined) throw new Error(`${name} has no licence file.`)
  const place = homepage ?? repository?.url ?? repository ?? ''
  const licence = readFileSync(file, 'utf8').trim().split(/\r?\n/)
  return [`## ${name} ${version}`, '', `${license}, ${place}`, '', '```text', ...licence, '```', '']
}
