import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { expect, test } from 'vitest'
import { boundMemory } from './engine.ts'

interface Assembly {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: Readonly<Record<string, unknown>> }
  validate(bytes: Uint8Array): boolean
}
const assembly = Reflect.get(globalThis, 'WebAssembly') as Assembly

const engine = path.join(path.dirname(createRequire(import.meta.url).resolve('minijinja-js')), 'minijinja_js_bg.wasm')

test('a memory can grow to the bound and no further', () => {
  // (module (memory (export "m") 1))
  const plain = Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0, 5, 3, 1, 0, 1, 7, 5, 1, 1, 109, 2, 0])
  const { m } = new assembly.Instance(new assembly.Module(boundMemory(plain, 200))).exports
  const memory = m as { grow(pages: number): number; buffer: ArrayBuffer }

  expect(memory.grow(199)).toBe(1)
  expect(memory.buffer.byteLength).toBe(200 * 65_536)
  expect(() => memory.grow(1)).toThrow(RangeError)
})

test('the module of the template engine is bounded and stays one', () => {
  const bounded = boundMemory(readFileSync(engine), 2_048)

  expect(bounded.length).toBeGreaterThan(100_000)
  expect(assembly.validate(bounded)).toBe(true)
  expect(Buffer.compare(bounded, readFileSync(engine))).not.toBe(0)
})

test('what is no module is given back', () => {
  const other = Uint8Array.from([1, 2, 3])

  expect(boundMemory(other, 1)).toBe(other)
})
