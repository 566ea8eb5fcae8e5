import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.SafeModeAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;

/** A NameNode and two DataNodes. Each line of the input is a command, and is answered by a line. */
public class MiniHdfs {
    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        // Of the log, which is not to be taken for an answer.
        System.setOut(System.err);
        Configuration configuration = new Configuration();
        // The two are one rack of one machine, so that a lost one is noticed within seconds.
        configuration.setInt("dfs.heartbeat.interval", 1);
        configuration.setInt("dfs.namenode.heartbeat.recheck-interval", 1000);
        configuration.setBoolean("dfs.client.block.write.replace-datanode-on-failure.enable", false);
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(configuration, new File(arguments[0]))
            .numDataNodes(2).build();
        cluster.waitActive();
        cluster.getFileSystem().setPermission(new Path("/"), new FsPermission((short) 0777));
        answers.println(cluster.getNameNodePort());
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(answer(cluster, line.split(" ")));
        }
        System.exit(0);
    }

    private static MiniDFSCluster.DataNodeProperties stopped;

    private static String answer(MiniDFSCluster cluster, String[] words) throws Exception {
        DistributedFileSystem files = cluster.getFileSystem();
        switch (words[0]) {
            case "restart":
                cluster.restartNameNode(true);
                break;
            case "safe":
                files.setSafeMode(words[1].equals("on") ? SafeModeAction.ENTER : SafeModeAction.LEAVE);
                break;
            case "quota":
                long bytes = words.length > 3 ? Long.parseLong(words[3]) : HdfsConstants.QUOTA_DONT_SET;
                files.mkdirs(new Path(words[1]));
                files.setQuota(new Path(words[1]), Long.parseLong(words[2]), bytes);
                break;
            case "mode":
                files.setPermission(new Path(words[1]), new FsPermission(words[2]));
                break;
            case "age":
                files.setTimes(new Path(words[1]), Long.parseLong(words[2]), -1);
                break;
            case "stop":
                // The one that has the only copy, or the first copy, of a file.
                String holder = files.getFileBlockLocations(new Path(words[1]), 0, 1)[0].getNames()[0];
                stopped = cluster.stopDataNode(holder);
                break;
            case "start":
                cluster.restartDataNode(stopped, true);
                cluster.waitActive();
                break;
            case "copies":
                files.setReplication(new Path(words[1]), (short) Integer.parseInt(words[2]));
                break;
            case "fill":
                IntStream.range(0, Integer.parseInt(words[2])).parallel().forEach(number -> {
                    try {
                        files.create(new Path(words[1], String.format("%06d.txt", number))).close();
                    } catch (java.io.IOException error) {
                        throw new java.io.UncheckedIOException(error);
                    }
                });
                break;
            default:
                return "unknown " + words[0];
        }
        return "done";
    }
}
