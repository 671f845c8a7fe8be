// npm run lock, after a dependency changed: completes package-lock.json for other platforms.
//
// npm drops an optional package that its registry cannot find (a partial mirror has few binaries of other platforms),
// and `npm ci` then refuses the lock file as out of step. This adds what was dropped: version and platform, as npm itself
// would, without an integrity hash, which only the full registry knows.

import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const systems = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32']
const processors = ['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64']
const file = path.resolve(import.meta.dirname, '../package-lock.json')

main()

function main() {
  const lock = JSON.parse(readFileSync(file, 'utf8'))
  const missing = Object.entries(lock.packages).flatMap(([where, entry]) => missingOf(lock.packages, where, entry))
  for (const { place, entry } of missing) lock.packages[place] ??= entry
  lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(byKey))
  writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
  console.log(`Added ${missing.length} packages of other platforms to the lock file.`)
}

function missingOf(packages, where, { optionalDependencies = {}, dev }) {
  return Object.entries(optionalDependencies)
    .filter(([name, range]) => !satisfies(find(packages, where, name), range))
    .map(([name, range]) => ({
      place: placeFor(packages, where, name),
      entry: sorted({ version: range.replace(/^[~^]/, ''), ...platformOf(name), ...(dev && { dev }), optional: true }),
    }))
}

/** Beside the package that wants it, or below it where another version has that place. */
function placeFor(packages, where, name) {
  const beside = `${where.slice(0, where.lastIndexOf('node_modules/'))}node_modules/${name}`
  return beside in packages ? `${where}/node_modules/${name}` : beside
}

/** Binaries are asked for by exact version; of a range any version will do. */
function satisfies(found, range) {
  if (!found) return false
  return !/^\d/.test(range) || found.version === range
}

/** As Node looks it up: below the package itself, then in every node_modules above. */
function find(packages, where, name) {
  const found = packages[path.posix.join(where, 'node_modules', name)]
  if (found || where === '') return found
  return find(packages, where.slice(0, Math.max(0, where.lastIndexOf('/node_modules/'))), name)
}

function platformOf(name) {
  const words = name.split(/[^a-z0-9]+/)
  const os = systems.filter((system) => words.includes(system))
  const cpu = processors.filter((processor) => words.includes(processor))
  const libc = words.some((word) => word.startsWith('musl')) ? ['musl'] : ['glibc']
  return {
    ...(cpu.length > 0 && { cpu }),
    ...(os.length > 0 && { os }),
    ...(os.includes('linux') && { libc }),
  }
}

/** npm's own order of fields, so that the next install leaves the file as it is. */
function sorted({ version, ...rest }) {
  return { version, ...Object.fromEntries(Object.entries(rest).sort(byKey)) }
}

function byKey([a], [b]) {
  return a.localeCompare(b, 'en')
}
