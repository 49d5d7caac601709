import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Returns a sequencer that starts the longest files first, because a long file that starts last would run alone at the end. */
export function startingWith(longest: readonly string[]): typeof BaseSequencer {
  return class extends BaseSequencer {
    override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
      const rank = ({ moduleId }: TestSpecification): number => {
        const place = longest.findIndex((path) => moduleId.endsWith(path))
        return place === -1 ? longest.length : place
      }
      // oxlint-disable-next-line unicorn/no-array-sort -- this is the method of the sequencer
      return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
    }
  }
}
