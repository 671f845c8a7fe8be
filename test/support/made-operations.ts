import type { Operation } from '../../src/core/operations/operation.ts'
import type { Subjects } from '../../src/core/operations/table.ts'

// The two files that are made from the table of operations: which methods there are, and the requests of a client.

/** The three parts of the table. */
export interface Table {
  readonly OF_RUNTIME: Subjects
  readonly OF_CONVERSATION: Subjects
  readonly OF_SERVER: Subjects
}

const HEAD = '// Made from the table of operations: `npx vitest run src/core/operations/table.test.ts -u`.\n\n'

/** `methods.made.ts`: the names of methods by subject. Whoever imports the package reads these, and no operation. */
export function methodsFile({ OF_RUNTIME, OF_CONVERSATION }: Table): string {
  const lists = {
    RUNTIME_METHODS: names(OF_RUNTIME, ({ run }) => run !== undefined),
    PRINCIPAL_METHODS: names(OF_RUNTIME, isOfPrincipal),
    TALK_METHODS: names(OF_CONVERSATION, isOfPrincipal),
  }
  return [
    HEAD,
    "import type { MethodNames } from './methods.ts'\n",
    ...Object.entries(lists).map(([name, subjects]) => `\nexport const ${name}: MethodNames = {\n${subjects}}\n`),
  ].join('')
}

function isOfPrincipal({ run, as, scope }: Operation): boolean {
  return as !== undefined || (run !== undefined && scope !== 'never')
}

function names(subjects: Subjects, isWanted: (operation: Operation) => boolean): string {
  return Object.entries(subjects)
    .map(([subject, operations]) => {
      const found = Object.entries(operations).filter(([, one]) => isWanted(one))
      return found.length === 0 ? '' : `  ${subject}: '${found.map(([name]) => name).join(' ')}',\n`
    })
    .join('')
}

/** `requests.made.ts`: the request of each operation that HTTP has. A client reads these, and no operation. */
export function requestsFile({ OF_RUNTIME, OF_CONVERSATION, OF_SERVER }: Table): string {
  return [
    HEAD,
    "import type { RequestForms } from './request.ts'\n",
    `\nexport const REQUESTS: RequestForms = {\n${requests({ ...OF_RUNTIME, ...OF_SERVER })}}\n`,
    `\nexport const TALK_REQUESTS: RequestForms = {\n${requests(OF_CONVERSATION)}}\n`,
  ].join('')
}

function requests(subjects: Subjects): string {
  return Object.values(subjects)
    .flatMap((operations) => Object.entries(operations))
    .map(([name, { http, plain, gives }]) => {
      if (http === undefined) return ''
      const rest = [
        ...(plain === undefined ? [] : [`plain: [${plain.map((one) => `'${one}'`).join(', ')}]`]),
        ...(gives !== undefined && 'text' in gives ? ['isText: true'] : []),
      ]
      return `  ${name}: { http: '${http}'${rest.map((part) => `, ${part}`).join('')} },\n`
    })
    .join('')
}
