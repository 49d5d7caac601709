package keyward;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.security.interfaces.EdECPrivateKey;
import java.security.spec.NamedParameterSpec;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.Set;

/**
 * A machine id that depends on no hardware: the hash of a key pair, which is created once and kept in a file.
 *
 * @param machineId the id for the option {@code machineId}: {@code mk1_} and the SHA-256 of the public key in base64url
 * @param isNew whether the call has created the key
 * @param isEphemeral whether the key is lost when the container is replaced or the machine restarts, because its folder is in a layer of a
 *     container or in memory
 */
public record MachineKey(String machineId, boolean isNew, boolean isEphemeral) {
    private static final Set<String> EPHEMERAL = Set.of("overlay", "aufs", "tmpfs", "ramfs");
    private static final String BEGIN = "-----BEGIN PRIVATE KEY-----\n";
    private static final String END = "\n-----END PRIVATE KEY-----\n";
    private static final int PUBLIC_KEY_BYTES = 32;

    /**
     * Returns the key of this machine from a file, and creates it if the file is missing. Only the owner can read the file. Processes that
     * start at the same time get the same key. Throws an IOException when the file cannot be created, or does not contain an Ed25519 key.
     */
    public static MachineKey open(Path file) throws IOException {
        Path path = file.toAbsolutePath();
        Files.createDirectories(path.getParent());
        try {
            byte[] known = readSeed(path);
            boolean isNew = known == null && create(path);
            byte[] seed = known == null ? readSeed(path) : known;
            if (seed == null) throw new NoSuchFileException(path.toString());
            byte[] hash = MessageDigest.getInstance("SHA-256").digest(publicKey(seed));
            boolean isEphemeral = EPHEMERAL.contains(Files.getFileStore(path.getParent()).type());
            return new MachineKey("mk1_" + SignedAnswer.encode(hash), isNew, isEphemeral);
        } catch (GeneralSecurityException error) {
            throw new IOException(error);
        }
    }

    private static byte[] readSeed(Path path) throws IOException {
        try {
            String text = Files.readString(path).strip().replaceAll("-----[A-Z ]+-----|\\s", "");
            var key = KeyFactory.getInstance("Ed25519").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(text)));
            return ((EdECPrivateKey) key).getBytes().orElseThrow();
        } catch (NoSuchFileException error) {
            return null;
        } catch (GeneralSecurityException | IllegalArgumentException error) {
            throw new IOException(
                    "The file " + path + " does not contain a machine key. Delete it to create a new one, which needs another slot.", error);
        }
    }

    /** Creates the file, complete and flushed to the disk. Returns false if another process has created it meanwhile. */
    private static boolean create(Path path) throws IOException, GeneralSecurityException {
        byte[] der = KeyPairGenerator.getInstance("Ed25519").generateKeyPair().getPrivate().getEncoded();
        String text = BEGIN + Base64.getEncoder().encodeToString(der) + END;
        Path draft = Storage.writeDraft(path.getParent(), text.getBytes(StandardCharsets.UTF_8));
        try {
            Files.createLink(path, draft); // unlike a move, never replaces the key of another process
            return true;
        } catch (FileAlreadyExistsException error) {
            return false;
        } finally {
            Files.deleteIfExists(draft);
        }
    }

    /** Computes the public key. The JDK does so only for a new key pair, so the seed replaces its random bytes. */
    private static byte[] publicKey(byte[] seed) throws GeneralSecurityException {
        var generator = KeyPairGenerator.getInstance("Ed25519");
        generator.initialize(NamedParameterSpec.ED25519, new SecureRandom() {
            private static final long serialVersionUID = 1;

            @Override
            public void nextBytes(byte[] bytes) {
                System.arraycopy(seed, 0, bytes, 0, bytes.length);
            }
        });
        byte[] spki = generator.generateKeyPair().getPublic().getEncoded();
        return Arrays.copyOfRange(spki, spki.length - PUBLIC_KEY_BYTES, spki.length);
    }
}
