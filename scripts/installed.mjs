// The packages that are installed with Legate, from package-lock.json and node_modules. Needs no network.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '..')
const { packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8'))

/** Each dependency, with the packages that come with it. A package that two bring counts for the first. */
export function installed() {
  const { dependencies, optionalDependencies } = packages['']
  const seen = new Set()
  return Object.keys({ ...dependencies, ...optionalDependencies }).map((name) => {
    const places = closure(`node_modules/${name}`, seen)
    const bytes = places.map((place) => bytesOf(path.join(root, place))).reduce((sum, size) => sum + size, 0)
    return { name, version: packages[`node_modules/${name}`].version, places, bytes }
  })
}

/** The versions of a package that these packages bring, and that the root has, in order. */
export function versionsOf(name, names) {
  const places = ['', ...names.map((one) => `node_modules/${one}/`)].map((place) => `${place}node_modules/${name}`)
  return [...new Set(places.flatMap((place) => packages[place]?.version ?? []))].sort()
}

/** A package and all it needs. Binaries of other platforms are in the lock file, and not installed. */
function closure(place, seen) {
  if (seen.has(place) || !existsSync(path.join(root, place))) return []
  seen.add(place)
  const { dependencies = {}, optionalDependencies = {} } = packages[place]
  const names = Object.keys({ ...dependencies, ...optionalDependencies })
  return [place, ...names.flatMap((name) => closure(find(place, name), seen))]
}

/** As Node looks it up: below the package itself, then in every node_modules above. */
function find(place, name) {
  const inside = path.posix.join(place, 'node_modules', name)
  return inside in packages || place === ''
    ? inside
    : find(place.slice(0, Math.max(0, place.lastIndexOf('/node_modules/'))), name)
}

/** The bytes of the files in a folder, without those of packages inside it. */
function bytesOf(folder) {
  const entries = readdirSync(folder, { withFileTypes: true }).filter(({ name }) => name !== 'node_modules')
  const sizes = entries.map((entry) => {
    const file = path.join(folder, entry.name)
    return entry.isDirectory() ? bytesOf(file) : statSync(file).size
  })
  return sizes.reduce((sum, size) => sum + size, 0)
}
