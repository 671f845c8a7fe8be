import { InputError } from '../../base/error.ts'
import { type LoadOptions, loadPromptText } from '../../prompt/file/load-text.ts'
import type { Prompt } from '../../prompt/prompt.ts'
import { readPromptFile } from './read-file.ts'

/**
 * Reads a prompt in YAML. A text with a line break, or one that begins with `{`, is the prompt itself; anything else is
 * the path of a file that must be there. Where it can be either, use `loadPromptFile` or `loadPromptText`.
 */
export function loadYamlPrompt<P extends Prompt = Prompt>(
  pathOrContent: string,
  options: LoadOptions<P> = {},
): Promise<P> {
  return load(pathOrContent, options, 'yaml')
}

/** The same in JSON, where comments and commas at the end are fine. */
export function loadJsonPrompt<P extends Prompt = Prompt>(
  pathOrContent: string,
  options: LoadOptions<P> = {},
): Promise<P> {
  return load(pathOrContent, options, 'json')
}

/** Reads a file, whatever its path looks like: `.json`, `.jsonc` and `.json5` are JSON, all others YAML. */
export async function loadPromptFile<P extends Prompt = Prompt>(
  path: string,
  options: LoadOptions<P> & { readonly format?: 'yaml' | 'json' } = {},
): Promise<P> {
  checkText(path, 'loadPromptFile')
  const format = options.format ?? (/\.json[c5]?$/i.test(path) ? 'json' : 'yaml')
  return loadPromptText<P>(await readPromptFile(path), { ...options, format, file: path })
}

async function load<P extends Prompt>(given: string, options: LoadOptions<P>, format: 'yaml' | 'json'): Promise<P> {
  checkText(given, format === 'yaml' ? 'loadYamlPrompt' : 'loadJsonPrompt')
  return isContent(given)
    ? loadPromptText<P>(given, { ...options, format })
    : loadPromptFile(given, { ...options, format })
}

function checkText(given: unknown, method: string): void {
  if (typeof given === 'string' && given !== '') return
  throw new InputError('invalid_input', `${method}(): give it the path of a file, or a text with the prompt.`)
}

function isContent(given: string): boolean {
  return given.includes('\n') || given.trimStart().startsWith('{')
}
