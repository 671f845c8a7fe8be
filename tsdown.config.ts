import { existsSync } from 'node:fs'
import path from 'node:path'
import { defineConfig } from 'tsdown'
import manifest from './package.json' with { type: 'json' }

/** The doors of the package as files of `src`, without their extension. */
const DOORS = Object.values(manifest.exports).flatMap((door) =>
  typeof door === 'string' ? [] : [door.default.slice('./dist/'.length, -'.js'.length)],
)

// A few files instead of one per source: importing the root costs what its files cost. Lazy imports stay files of their own.
// What is common to the root and to small doors is a part of its own, so that these stay small.
const PARTS = {
  'of-small-doors': [
    'doors/fields',
    'doors/models',
    'doors/rows',
    'core/store/memory/index',
    'stores/sqlite/index',
    'stores/postgres/index',
    'stores/json/index',
    'stores/dbos/index',
  ],
  'of-doors': ['core/extension/prompt-files', 'doors/tools', 'doors/mcp', 'doors/hooks', 'doors/grant'],
  'of-index': ['index'],
}

/** Read by doors and by the first run, which have little else in common: a file of its own. */
const ALONE = /[\\/]src[\\/]core[\\/]base[\\/]system[\\/](own-files)\.ts$/

export default defineConfig({
  entry: [...DOORS.map((door) => `src/${door}.ts`), 'src/cli/main.ts'],
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  fixedExtension: false,
  dts: true,
  plugins: [
    {
      name: 'last-words',
      generateBundle: (_, files) => {
        Object.values(files).forEach(inAscii)
        Object.values(files).forEach(declareGlobals)
      },
    },
  ],
  // No marks of files between the modules: whoever reads the sources has the repository.
  inputOptions: { experimental: { attachDebugInfo: 'none' } },
  outputOptions: {
    // Comments are in the types; without them the root is read a tenth faster.
    comments: { jsdoc: false },
    codeSplitting: {
      groups: [
        { name: (id) => ALONE.exec(id)?.[1] ?? null, priority: 1.5 },
        ...Object.keys(PARTS).map((part, at, all) => ({ name: partOf(part as Part), priority: all.length + 1 - at })),
        { name: ofFirstRun('of-first-run', PARTS['of-small-doors']), priority: 1 },
        { name: ofFirstRun('of-first-run-and-doors', PARTS['of-doors']), priority: 0.5 },
        { name: ofFirstRun('first-run', ['core/runtime/lazy']), priority: 0 },
      ],
    },
  },
  // What the sources import is a dependency, one of these that are copied in (THIRD-PARTY.md), or the build fails.
  deps: {
    neverBundle: [/^node:/],
    onlyBundle: [
      'hono',
      '@hono/node-server',
      'jose',
      '@agentclientprotocol/sdk',
      '@a2a-js/sdk',
      '@ai-sdk/anthropic',
      '@ai-sdk/google',
      '@ai-sdk/openai',
      '@ai-sdk/openai-compatible',
      '@ai-sdk/provider',
      '@ai-sdk/provider-utils',
      '@modelcontextprotocol/client',
      '@modelcontextprotocol/core',
      '@modelcontextprotocol/server',
      'eventsource-parser',
      'pkce-challenge',
      'zod',
    ],
  },
})

/** A file with one other character is read as two bytes a character, and slower. All of them stand in texts. */
function inAscii(file: { readonly fileName: string; code?: string }): void {
  if (!file.fileName.endsWith('.js') || file.code === undefined) return
  file.code = file.code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Types of the platform that ours name. Where a program has the types of Node or of a browser, these add nothing to them. */
const GLOBALS = ['AbortSignal', 'URL', 'ReadableStream<R = any>']

/** A program compiles against our types even where it has neither the types of Node nor those of a browser. */
function declareGlobals(file: { readonly fileName: string; code?: string }): void {
  const { fileName, code } = file
  if (!fileName.endsWith('.d.ts') || code === undefined) return
  const named = GLOBALS.filter((name) => code.includes(name.split('<')[0] ?? name))
  const lib = code.includes('Symbol.asyncDispose') ? '/// <reference lib="esnext.disposable" />\n' : ''
  const globals = named.map((name) => `  interface ${name} {}\n`).join('')
  file.code = `${lib}${code}${globals === '' ? '' : `\ndeclare global {\n${globals}}\n`}`
}

type Part = keyof typeof PARTS

interface Modules {
  getModuleInfo(id: string): { readonly importedIds: readonly string[] } | null
}

const reached = new Map<string, ReadonlySet<string>>()

/** Importing the root loads few files: each would cost most of a millisecond. What is loaded later is split as it is used. */
function partOf(part: Part) {
  return (id: string, modules: Modules) => {
    const isCommon = PARTS[part].some((door) => reachedFrom(door, modules).has(id))
    return isCommon && reachedFrom('index', modules).has(id) ? part : null
  }
}

/** The same for what is loaded with the first run: parts of it that these doors have in common with it, or the rest. */
function ofFirstRun(part: string, doors: readonly string[]) {
  return (id: string, modules: Modules) => {
    if (!reachedFrom('core/runtime/lazy', modules).has(id) || reachedFrom('index', modules).has(id)) return null
    return doors.some((door) => reachedFrom(door, modules).has(id)) ? part : null
  }
}

function reachedFrom(door: string, modules: Modules): ReadonlySet<string> {
  const known = reached.get(door)
  if (known !== undefined) return known
  const files = [`src/${door}.ts`, `src/${door}/index.ts`].filter((file) => existsSync(file))
  const found = new Set(files.map((file) => path.resolve(file)))
  for (const id of found) for (const next of modules.getModuleInfo(id)?.importedIds ?? []) found.add(next)
  reached.set(door, found)
  return found
}
