import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { build, type InlineConfig } from 'tsdown'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder with the programs. */
    crashPrograms: string
  }
}

const root = path.resolve(import.meta.dirname, '../../..')
/** Those of crash tests, and those of tests with several processes on one database. */
const sources = ['test/crash/programs', 'test/postgres/programs'].map((folder) => path.join(root, folder))
const cache = path.join(root, 'node_modules/.cache')

/** What programs import of the package, and where it is. */
const DOORS: Readonly<Record<string, string>> = {
  legate: 'src/index.ts',
  'legate/testing': 'src/testing/index.ts',
  'legate/background': 'src/doors/background.ts',
  'legate/server': 'src/server/index.ts',
  'legate/store/json': 'src/stores/json/index.ts',
  'legate/store/postgres': 'src/stores/postgres/index.ts',
  'legate/store/sqlite': 'src/stores/sqlite/index.ts',
}

/**
 * Builds all programs of crash tests before the first one is started, and the package once for all of them. Hundreds of
 * processes load it: each program keeps what Node has compiled of it when it first came to its end, for those after it.
 */
export default async function buildPrograms(project: TestProject): Promise<() => void> {
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(path.join(cache, 'legate-crash-'))
  await buildPackage(folder)
  await buildFiles(folder, {
    entry: Object.fromEntries(sources.flatMap(programsIn)),
    format: 'esm',
    plugins: [{ name: 'doors', resolveId: (id) => (id in DOORS ? { id: doorFile(id), external: true } : null) }],
  })
  project.provide('crashPrograms', folder)
  return () => rmSync(folder, { recursive: true, force: true })
}

function programsIn(folder: string): (readonly [name: string, file: string])[] {
  return readdirSync(folder).map((file) => [path.parse(file).name, path.join(folder, file)])
}

/** One file for all doors, so that they share their modules; and for each door a module that gives its names. */
async function buildPackage(folder: string): Promise<void> {
  const entry = path.join(folder, 'package.ts')
  const lines = Object.entries(DOORS).map(([door, file]) => `export * as '${door}' from '${path.join(root, file)}'`)
  writeFileSync(entry, lines.join('\n'))
  await buildFiles(folder, { entry, format: 'cjs', outputOptions: { codeSplitting: false }, minify: READABLE })
  const built = path.join(folder, 'package.cjs')
  writeFileSync(built, withRequire(inAscii(readFileSync(built, 'utf8'))))
  writeFileSync(path.join(folder, 'load.cjs'), LOAD)
  const { doors }: { doors: Record<string, object> } = createRequire(entry)('./load.cjs')
  for (const [door, names] of Object.entries(doors)) {
    const from = `import load from './load.cjs'\nexport const { ${Object.keys(names).join(', ')} } = load.doors['${door}']\n`
    writeFileSync(path.join(folder, doorFile(door)), from)
  }
}

async function buildFiles(outDir: string, options: InlineConfig): Promise<void> {
  const common = { config: false, cwd: root, platform: 'node', dts: false, clean: false, logLevel: 'error' } as const
  await build({ ...common, ...options, outDir, fixedExtension: true })
}

function doorFile(door: string): string {
  return `./${door.replaceAll('/', '-')}.mjs`
}

/** Less to read for hundreds of processes; what is thrown there can still be understood. */
const READABLE = { compress: false, mangle: false, codegen: true } as const

/** A script that Node takes from its cache has lost the way to import: what it loads later is required instead. */
function withRequire(code: string): string {
  return code.replaceAll(
    /\bimport\((`[^`]+`)\)/g,
    (_, name: string) => `Promise.resolve().then(()=>asModule(require(${name})))`,
  )
}

/** Every other character is in a string, a template or an expression, and means the same as its escape. */
function inAscii(code: string): string {
  return code.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Loads `package.cjs` as Node would, with the code that was kept: by its program, or else when the package was built. */
const LOAD = `
const { existsSync, readFileSync, renameSync, writeFileSync } = require('node:fs')
const { basename, join } = require('node:path')
const { constants, Script } = require('node:vm')

const filename = join(__dirname, 'package.cjs')
const built = filename + '.code'
const ofProgram = join(__dirname, basename(process.argv[1]) + '.code')
const kept = [ofProgram, built].find(existsSync)
const cachedData = kept && readFileSync(kept)
const text = '(function (exports, require, module, __filename, __dirname, asModule) {' + readFileSync(filename, 'latin1') + '\\n})'
const importModuleDynamically = constants.USE_MAIN_CONTEXT_DEFAULT_LOADER
// Newer Node warns that the way to load modules is experimental; a worker must print nothing.
const { emitWarning } = process
process.emitWarning = (warning, ...more) => {
  if (!String(warning).includes('USE_MAIN_CONTEXT')) emitWarning.call(process, warning, ...more)
}
/** What is required has its default as an import has it. */
const asModule = (found) => Object.create(found, { default: { value: found.default ?? found } })
const script = new Script(text, { filename, cachedData, importModuleDynamically })
const loaded = { exports: {} }
script.runInThisContext()(loaded.exports, require, loaded, filename, __dirname, asModule)
if (kept === undefined) keep(built)
else if (kept === built) process.once('exit', () => keep(ofProgram))

exports.doors = loaded.exports

function keep(file) {
  const written = file + process.pid
  try {
    writeFileSync(written, script.createCachedData())
  } catch (error) {
    // Another user may not write here, and keeps nothing.
    if (error.code === 'EACCES') return
    throw error
  }
  renameSync(written, file)
}
`
