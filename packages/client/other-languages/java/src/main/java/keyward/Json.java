package keyward;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads and writes JSON, because the JDK has no parser. Objects are maps, arrays are lists, numbers are doubles. */
final class Json {
    private static final int MAX_DEPTH = 64;

    private final String text;
    private int position;

    private Json(String text) {
        this.text = text;
    }

    /** Parses an object. Returns an empty map for any other text. */
    @SuppressWarnings("unchecked")
    static Map<String, Object> parseObject(String text) {
        try {
            Json json = new Json(text);
            Object value = json.value(0);
            json.blanks();
            return value instanceof Map && json.position == text.length() ? (Map<String, Object>) value : Map.of();
        } catch (IllegalArgumentException | StringIndexOutOfBoundsException error) {
            return Map.of();
        }
    }

    static String write(Object value) {
        if (value instanceof Map<?, ?> map) {
            List<String> members = new ArrayList<>();
            map.forEach((name, member) -> members.add(write(name) + ":" + write(member)));
            return "{" + String.join(",", members) + "}";
        }
        if (value instanceof List<?> list) return "[" + String.join(",", list.stream().map(Json::write).toList()) + "]";
        if (!(value instanceof String string)) return String.valueOf(value);
        StringBuilder quoted = new StringBuilder("\"");
        for (char character : string.toCharArray()) {
            if (character < ' ' || character == '"' || character == '\\' || Character.isSurrogate(character))
                quoted.append(String.format("\\u%04x", (int) character));
            else quoted.append(character);
        }
        return quoted.append('"').toString();
    }

    private Object value(int depth) {
        if (depth > MAX_DEPTH) throw new IllegalArgumentException("The JSON is nested too deeply.");
        blanks();
        char first = text.charAt(position);
        if (first == '{') return object(depth);
        if (first == '[') return array(depth);
        if (first == '"') return string();
        int start = position;
        while (position < text.length() && ",]} \t\r\n".indexOf(text.charAt(position)) < 0) position++;
        String word = text.substring(start, position);
        return switch (word) {
            case "true" -> true;
            case "false" -> false;
            case "null" -> null;
            default -> number(word);
        };
    }

    private Map<String, Object> object(int depth) {
        Map<String, Object> members = new LinkedHashMap<>();
        for (char mark = open('}'); mark != '}'; mark = next("},")) {
            blanks();
            String name = string();
            next(":");
            members.put(name, value(depth + 1));
        }
        return members;
    }

    private List<Object> array(int depth) {
        List<Object> values = new ArrayList<>();
        for (char mark = open(']'); mark != ']'; mark = next("],")) values.add(value(depth + 1));
        return values;
    }

    /** Skips the opening bracket. If the brackets are empty, also skips and returns the closing bracket. */
    private char open(char closing) {
        position++;
        blanks();
        return text.charAt(position) == closing ? next(String.valueOf(closing)) : ',';
    }

    private String string() {
        StringBuilder value = new StringBuilder();
        if (text.charAt(position) != '"') throw new IllegalArgumentException("The JSON must have a string at this position.");
        for (position++; text.charAt(position) != '"'; position++) {
            char character = text.charAt(position);
            if (character < ' ') throw new IllegalArgumentException("The JSON has a control character in a string.");
            value.append(character == '\\' ? escaped() : character);
        }
        position++;
        return value.toString();
    }

    private char escaped() {
        char character = text.charAt(++position);
        int known = "\"\\/bfnrt".indexOf(character);
        if (known >= 0) return "\"\\/\b\f\n\r\t".charAt(known);
        if (character != 'u') throw new IllegalArgumentException("The JSON has an unknown escape.");
        position += 4;
        return (char) Integer.parseInt(text, position - 3, position + 1, 16);
    }

    private static Double number(String word) {
        if (!word.matches("-?(0|[1-9]\\d*)(\\.\\d+)?([eE][+-]?\\d+)?")) throw new IllegalArgumentException("Not JSON: " + word);
        return Double.valueOf(word);
    }

    /** Skips blanks and one of the marks, and returns the mark. */
    private char next(String marks) {
        blanks();
        char mark = text.charAt(position++);
        if (marks.indexOf(mark) < 0) throw new IllegalArgumentException("The JSON lacks one of " + marks);
        return mark;
    }

    private void blanks() {
        while (position < text.length() && " \t\r\n".indexOf(text.charAt(position)) >= 0) position++;
    }
}
