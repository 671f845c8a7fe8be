import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect } from 'vitest'
import { RecipeError } from '../../../src/core/base/error.ts'
import type { Notice } from '../../../src/doors/recipe.ts'
import { tempFolder } from '../../support/temp-folder.ts'

/** A folder with these files in it; gone after the test. */
export function folderWith(
  files: Readonly<Record<string, string | Uint8Array>> = {},
  ...atEnd: Parameters<typeof tempFolder>
): string {
  const folder = tempFolder(...atEnd)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
    writeFileSync(path.join(folder, name), text)
  }
  return folder
}

/** One recipe in a folder of its own. */
export function recipeFile(text: string, others: Readonly<Record<string, string>> = {}): string {
  return path.join(folderWith({ 'recipe.yaml': text, ...others }), 'recipe.yaml')
}

/** What was refused: the words, the place and the advice. */
export interface Refusal {
  readonly problem: string
  readonly file: string
  readonly line: number | null
  readonly hint: string | null
  readonly notices: readonly Notice[]
}

export async function refusalOf(work: Promise<unknown>): Promise<Refusal> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(RecipeError.isInstance(error), String(error)).toBe(true)
  const { details, message } = error as RecipeError
  expect(message).toContain(String(details['file']))
  return details as unknown as Refusal
}

export const minimal = 'title: T\ndescription: D\n'
