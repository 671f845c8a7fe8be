import { existsSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'

/** Every name a user can import at run time. A change here is a change of the public API: say so in CHANGELOG.md. */
const surface: Readonly<Record<string, readonly string[]>> = {
  index: [],
  'testing/index': [],
  'store/memory': [],
  'store/sqlite': [],
}

describe.each(Object.entries(surface))('%s', (entry, names) => {
  test('the source exports exactly these names', async () => {
    expect(await namesIn(`src/${entry}.ts`)).toEqual(names)
  })

  test('the built package exports the same', async (context) => {
    context.skip(!existsSync(file(`dist/${entry}.js`)), 'dist is not built: npm run build')

    expect(await namesIn(`dist/${entry}.js`)).toEqual(names)
  })
})

async function namesIn(relative: string): Promise<string[]> {
  const module: object = await import(pathToFileURL(file(relative)).href)
  return Object.keys(module).sort()
}

function file(relative: string): string {
  return path.resolve(import.meta.dirname, '..', relative)
}
