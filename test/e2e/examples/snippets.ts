import { readFileSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript'

const root = path.resolve(import.meta.dirname, '../../..')

/** A `ts` block of a page that begins with an import: it must compile as it stands, run, and print what it says. */
export interface Snippet {
  /** The page and the line of the block's first line, as in `docs/guide/tool.md:12`. */
  readonly name: string
  readonly code: string
  /** What it prints: its comment lines that begin with `// >`. */
  readonly prints: string
}

export function snippetsIn(page: string): Snippet[] {
  const text = readFileSync(path.join(root, page), 'utf8')
  return [...text.matchAll(/^```ts\n(import .*?)^```$/gms)].map(({ 1: code = '', index }) => ({
    name: `${page}:${text.slice(0, index).split('\n').length + 1}`,
    code,
    prints: [...code.matchAll(/^\s*\/\/ > ?(.*)$/gm)].map(([, line = '']) => `${line}\n`).join(''),
  }))
}

/** What the compiler says against the snippets, with the settings of this repository. */
export function typeErrors(snippets: readonly Snippet[]): string[] {
  const files = new Map(
    snippets.map(({ code, name }) => [path.join(root, 'test', `${name.replaceAll(/\W/g, '-')}.ts`), code]),
  )
  const config = ts.readConfigFile(path.join(root, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, root)
  const host = ts.createCompilerHost(options)
  const { getSourceFile, fileExists, readFile } = host
  host.fileExists = (file) => files.has(file) || fileExists(file)
  host.readFile = (file) => files.get(file) ?? readFile(file)
  host.getSourceFile = (file, ...rest) => {
    const code = files.get(file)
    if (code === undefined) return getSourceFile(file, ...rest)
    return ts.createSourceFile(file, code, rest[0])
  }
  const program = ts.createProgram([...files.keys()], options, host)
  return [...files.keys()].flatMap((file) => {
    const source = program.getSourceFile(file)
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]
    return found.map(
      ({ messageText }) => `${path.basename(file)}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
    )
  })
}
